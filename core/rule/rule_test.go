package rule_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/rule"
)

var at = time.Date(2026, 1, 17, 15, 30, 0, 0, time.UTC)

const payload = `{
	"service": "api-gateway", "message": "Connection timeout", "severity": "critical", "count": 42, "enabled": true,
	"metadata": {"host": "web-01", "port": 8080}, "tags": ["production", "backend"], "nothing": null, "a.b": 1}`

func event(t *testing.T, payload string) rule.Event {
	t.Helper()
	e, err := rule.NewEvent(123, "core.error_event", []byte(payload), at)
	require.NoError(t, err)
	return e
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions, payload string
		matched             bool
		why                 string
	}{
		"none":         {``, payload, true, "the rule has no conditions"},
		"null":         {`null`, payload, true, "the rule has no conditions"},
		"empty list":   {`[]`, payload, true, "the rule has no conditions"},
		"empty object": {`{}`, payload, true, "the rule has no conditions"},
		"empty any":    {`{"any": []}`, payload, true, "the rule has no conditions"},
		"no payload": {
			`[{"field":"x","operator":"equals","value":1}]`, ``, true,
			"the event has no payload, which meets any conditions",
		},
		"null payload": {
			`{"expression":"false"}`, `null`, true,
			"the event has no payload, which meets any conditions",
		},
		"equals": {
			`[{"field":"severity","operator":"equals","value":"critical"}]`, payload, true,
			"the condition holds",
		},
		"equals another": {
			`[{"field":"severity","operator":"equals","value":"info"}]`, payload, false,
			`severity is "critical", not "info"`,
		},
		"equals number": {
			`[{"field":"count","operator":"equals","value":42.0}]`, payload, true,
			"the condition holds",
		},
		"equals number as text": {
			`[{"field":"count","operator":"equals","value":"42"}]`, payload, false,
			`count is 42, not "42"`,
		},
		"equals object": {
			`[{"field":"metadata","operator":"equals","value":{"port":8080,"host":"web-01"}}]`,
			payload, true, "the condition holds",
		},
		"equals null": {`[{"field":"nothing","operator":"equals"}]`, payload, true, "the condition holds"},
		"nested": {
			`[{"field":"metadata.port","operator":"equals","value":8080}]`, payload, true,
			"the condition holds",
		},
		"not equals": {
			`[{"field":"severity","operator":"not_equals","value":"info"}]`, payload, true,
			"the condition holds",
		},
		"not equals the same": {
			`[{"field":"severity","operator":"not_equals","value":"critical"}]`, payload, false,
			`severity is "critical"`,
		},
		"not equals, no field": {
			`[{"field":"missing","operator":"not_equals","value":1}]`, payload, false,
			"the payload has no field missing",
		},
		"contains": {
			`[{"field":"message","operator":"contains","value":"time"}]`, payload, true,
			"the condition holds",
		},
		"contains not": {
			`[{"field":"message","operator":"contains","value":"disk"}]`, payload, false,
			`message is "Connection timeout" and does not contain "disk"`,
		},
		"contains in a list": {
			`[{"field":"tags","operator":"contains","value":"backend"}]`, payload, false,
			`tags is ["production","backend"], and only a text contains another`,
		},
		"contains a number": {
			`[{"field":"message","operator":"contains","value":1}]`, payload, false,
			"1 is not a text, and only a text is contained in another",
		},
		"field from the root": {
			`[{"field":"payload.severity","operator":"equals","value":"critical"}]`, payload,
			false, "the payload has no field payload.severity",
		},
		"a dot is no part of key": {
			`[{"field":"a.b","operator":"equals","value":1}]`, payload, false,
			"the payload has no field a.b",
		},
		"lists have no fields": {
			`[{"field":"tags.0","operator":"equals","value":"production"}]`, payload, false,
			"the payload has no field tags.0",
		},
		"payload is a list": {
			`[{"field":"tags","operator":"equals","value":1}]`, `[1]`, false,
			"the payload has no field tags",
		},
		"all hold": {
			`[{"field":"count","operator":"equals","value":42},{"field":"enabled","operator":"equals","value":true}]`, payload, true, "all 2 conditions hold",
		},
		"one of all fails": {
			`{"all":[{"field":"count","operator":"equals","value":42},{"field":"enabled","operator":"equals","value":false}]}`, payload,
			false, "enabled is true, not false",
		},
		"one of any holds": {
			`{"any":[{"field":"missing","operator":"equals","value":1},{"field":"count","operator":"equals","value":42}]}`, payload, true, "count is 42",
		},
		"none of any holds": {
			`{"any":[{"field":"missing","operator":"equals","value":1},{"field":"count","operator":"equals","value":1}]}`, payload,
			false, "none of the conditions holds: the payload has no field missing; count is 42, not 1",
		},
		"none of many": {
			`{"any":[` + strings.Repeat(`{"field":"x","operator":"equals"},`, 7) +
				`{"field":"y","operator":"equals"}]}`, payload, false,
			"none of the conditions holds: " + strings.Repeat("the payload has no field x; ", 5) + "and 3 more",
		},
		"expression": {
			`{"expression":"event.payload.count > 40 and 'backend' in event.payload.tags"}`, payload, true,
			"the expression is true",
		},
		"expression in braces": {
			`{"expression":" {{ event.payload.severity == 'info' }} "}`, payload, false,
			`the expression event.payload.severity == 'info' is false: event.payload.severity is "critical"`,
		},
		"expression truthy": {
			`{"expression":"event.payload.service"}`, payload, true,
			`the expression is "api-gateway"`,
		},
		"expression empty value": {
			`{"expression":"event.payload.nothing"}`, payload, false,
			"the expression event.payload.nothing is null",
		},
		"expression of the rest": {
			`{"expression":"event.id == 123 and event.trigger == event.trigger_ref and event.created == '2026-01-17T15:30:00+00:00'"}`, payload,
			true, "the expression is true",
		},
		"expression beside others": {
			`{"expression":"false","note":"kept"}`, payload, false,
			"the expression false is false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conditions, err := rule.ParseConditions("core.notify", []byte(c.conditions))
			require.NoError(t, err)
			verdict := conditions.Match(event(t, c.payload))
			require.Equal(t, c.matched, verdict.Matched)
			require.Equal(t, c.why, verdict.Why)
			require.NoError(t, verdict.Err)
		})
	}
}

func TestConditionsModes(t *testing.T) {
	t.Parallel()
	for conditions, mode := range map[string]string{
		`[]`: rule.All, `{"expression":"true"}`: rule.All, `{"all":[]}`: rule.All, `{"any":[]}`: rule.Any,
	} {
		c, err := rule.ParseConditions("core.notify", []byte(conditions))
		require.NoError(t, err)
		require.Equal(t, mode, c.Mode(), conditions)
	}
}

// Upstream 53: a mistake in a rule is reported with the rule and the place.
func TestConditionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for conditions, want := range map[string]string{
		`"text"`:                  `rule core.notify: conditions: they must be a list, {"all": […]}, {"any": […]} or {"expression": "…"}`,
		`[1]`:                     `rule core.notify: conditions[0]: it must be an object with field, operator and value`,
		`[{"operator":"equals"}]`: `rule core.notify: conditions[0].field: it must name a field of the payload`,
		`[{"field":"a"}]`:         `rule core.notify: conditions[0].operator: it must be one of equals, not_equals, contains`,
		`{"any":{}}`:              `rule core.notify: conditions.any: it must be a list of {field, operator, value}`,
		`{"some":[]}`:             `rule core.notify: conditions: the key "some" is unknown: use all, any or expression`,
		`{"any":[],"all":[]}`:     `rule core.notify: conditions: an object has one of the keys all, any and expression`,
		`{"expression":1}`:        `rule core.notify: conditions.expression: it must be a text`,
		`[{"field":"a","operator":"equals","value":1},{"field":"a","operator":"gt","value":1}]`: `rule core.notify: conditions[1].operator: "gt" is unknown: use equals, not_equals, contains`,
	} {
		_, err := rule.ParseConditions("core.notify", []byte(conditions))
		require.EqualError(t, err, want)
		_, ok := errors.AsType[*rule.Error](err)
		require.True(t, ok)
	}
	_, err := rule.ParseConditions("core.notify", []byte(`{"expression":"{{ event.payload.a == }}"}`))
	require.ErrorContains(t, err, "rule core.notify: conditions.expression: column ")
	inner, ok := errors.AsType[*expr.Error](err)
	require.True(t, ok)
	require.Equal(t, "{{ event.payload.a == }}", inner.Source)
	_, column := inner.Position()
	require.Greater(t, column, len("{{ event.payload.a"), "the position is one in the text of the rule")
}

// An expression that cannot be evaluated does not match, with the reason.
func TestExpressionThatFails(t *testing.T) {
	t.Parallel()
	conditions, err := rule.ParseConditions("core.notify", []byte(`{"expression":"{{ event.payload.missing > 1 }}"}`))
	require.NoError(t, err)
	verdict := conditions.Match(event(t, payload))
	require.False(t, verdict.Matched)
	require.ErrorContains(t, verdict.Err, "rule core.notify: conditions.expression: column ")
	require.True(t, strings.HasPrefix(verdict.Why, "the expression could not be evaluated: column "), verdict.Why)

	conditions, err = rule.ParseConditions("core.notify", []byte(`{"expression":"pack.config.a"}`))
	require.NoError(t, err)
	require.Error(t, conditions.Match(event(t, payload)).Err, "only event is there")
}

// Parameters are rendered as existing rules expect it.
func TestParams(t *testing.T) {
	t.Parallel()
	config := map[string]any{"alert_channel": "#incidents", "timeout": int64(30)}
	subject := rule.Subject{ID: 42, Ref: "test.rule", PackConfig: config, Now: at.Add(1500 * time.Microsecond)}
	for name, c := range map[string]struct{ params, want string }{
		"nothing": {``, `{}`},
		"null":    {`null`, `{}`},
		"text":    {`{"m":"Hello {{ event.payload.service }}"}`, `{"m":"Hello api-gateway"}`},
		"kind is kept": {
			`{"n":"{{ event.payload.count }}","b":"{{event.payload.enabled}}"}`,
			`{"n":42,"b":true}`,
		},
		"nested": {
			`{"h":"{{ event.payload.metadata.host }}","p":"{{ event.payload.metadata.port }}"}`,
			`{"h":"web-01","p":8080}`,
		},
		"index":      {`{"a":"{{ event.payload.tags.0 }}","b":"{{ event.payload.tags.1 }}","c":"{{ event.payload.tags.2 }}"}`, `{"a":"production","b":"backend","c":null}`},
		"whole list": {`{"a":"{{ event.payload.tags }}"}`, `{"a":["production","backend"]}`},
		"object in a text": {
			`{"a":"is {{ event.payload.metadata }}"}`,
			`{"a":"is {\"host\":\"web-01\",\"port\":8080}"}`,
		},
		"pack": {
			`{"c":"{{ pack.config.alert_channel }}","t":"{{ pack.config.timeout }}"}`,
			`{"c":"#incidents","t":30}`,
		},
		"pack without config": {`{"c":"{{ pack.invalid.field }}"}`, `{"c":null}`},
		"system": {
			`{"t":"{{ system.timestamp }}","i":"{{ system.rule.id }}","r":"{{ system.rule.ref }}"}`,
			`{"t":"2026-01-17T15:30:00.001500+00:00","i":42,"r":"test.rule"}`,
		},
		"event": {
			`{"s":"Event {{ event.id }} from {{ event.trigger }} at {{ event.created }}"}`,
			`{"s":"Event 123 from core.error_event at 2026-01-17T15:30:00+00:00"}`,
		},
		"missing":      {`{"a":"{{ event.payload.none }}","b":"x{{ event.payload.none }}y"}`, `{"a":null,"b":"xy"}`},
		"unknown root": {`{"a":"{{ unknown.field }}"}`, `{"a":null}`},
		"several": {
			`{"a":"{{ event.payload.service }}: {{ event.payload.message }}"}`,
			`{"a":"api-gateway: Connection timeout"}`,
		},
		"plain":  {`{"a":"text","b":123,"c":false,"d":null}`, `{"a":"text","b":123,"c":false,"d":null}`},
		"within": {`{"a":{"b":["{{ event.payload.severity }}","c"]}}`, `{"a":{"b":["critical","c"]}}`},
		"blanks": {`{"a":"{{  event.payload.service  }}"}`, `{"a":"api-gateway"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params, err := rule.ParseParams("test.rule", []byte(c.params))
			require.NoError(t, err)
			got, err := params.Render(event(t, payload), subject)
			require.NoError(t, err)
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(raw))
		})
	}
}

func TestParamsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := rule.ParseParams("test.rule", []byte(`[1]`))
	require.EqualError(t, err, "rule test.rule: action_params: they must be an object")
	_, err = rule.ParseParams("test.rule", []byte(`{"a":{"b":["ok","an {{ open one"]}}`))
	require.EqualError(t, err,
		`rule test.rule: action_params: a.b[1]: column 4: the template is not closed by }} in "an {{ open one"`)
	_, err = rule.NewEvent(7, "a.b", []byte(`{`), at)
	require.ErrorContains(t, err, "payload of event 7")
}
