package rule_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/rule"
)

// FuzzRule checks that any readable rule and event are compared without a panic, that a verdict has its reason, and
// that an error names the rule.
func FuzzRule(f *testing.F) {
	f.Add(`[{"field":"a.b","operator":"contains","value":"x"}]`, `{"t":"{{ event.payload.a.0 }} {{ pack.config.b }}"}`,
		`{"a":["x"]}`)
	f.Add(`{"any":[{"field":"a","operator":"equals","value":{"b":[1,2.5,null]}}]}`, `{"t":"{{"}`,
		`{"a":{"b":[1,2.5,null]}}`)
	f.Add(`{"expression":"{{ event.payload.a[0] in ['x', event.trigger] }}"}`, `[]`, `null`)
	f.Add(`{"all":[]}`, `{"t":"{{ }}{{.}}{{ event..payload }}"}`, `"text"`)
	f.Fuzz(func(t *testing.T, conditions, params, payload string) {
		names := func(err error) {
			_, ok := errors.AsType[*rule.Error](err)
			require.True(t, ok)
			require.True(t, strings.HasPrefix(err.Error(), "rule a.b: "), err.Error())
		}
		event, err := rule.NewEvent(1, "a.t", []byte(payload), time.Unix(0, 0))
		if err != nil {
			return
		}
		if c, err := rule.ParseConditions("a.b", []byte(conditions)); err != nil {
			names(err)
		} else {
			verdict := c.Match(event)
			require.NotEmpty(t, verdict.Why)
			if verdict.Err != nil {
				require.False(t, verdict.Matched)
				names(verdict.Err)
			}
		}
		mistakes, warnings := rule.Check("a.b", []byte(conditions))
		for _, wrong := range slices.Concat(mistakes, warnings) {
			names(wrong)
		}
		p, err := rule.ParseParams("a.b", []byte(params))
		if err != nil {
			names(err)
			return
		}
		rendered, err := p.Render(event, rule.Subject{ID: 1, Ref: "a.b", PackConfig: map[string]any{"b": true}})
		if err != nil {
			names(err)
			return
		}
		_, err = json.Marshal(rendered)
		require.NoError(t, err)
	})
}
