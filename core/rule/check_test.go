package rule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/rule"
)

// Check reports all mistakes at once, also the ones that stored rules may have.
func TestCheckTellsEverything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions         string
		mistakes, warnings []string
	}{
		"nothing":  {``, nil, nil},
		"null":     {`null`, nil, nil},
		"in order": {`{"any":[{"field":"a","operator":"equals","value":null},{"field":"a","operator":"contains","value":"b"}]}`, nil, nil},
		"no JSON":  {`[`, []string{"rule core.notify: conditions: read a value: unexpected EOF"}, nil},
		"a text":   {`"a"`, []string{`rule core.notify: conditions: they must be a list, {"all": […]}, {"any": […]} or {"expression": "…"}`}, nil},
		"all of it": {`[{"operator":"gt"},1,{"field":"a","operator":"equals"},{"field":"b"}]`, []string{
			"rule core.notify: conditions[0].field: it must name a field of the payload",
			`rule core.notify: conditions[0].operator: "gt" is unknown: use equals, not_equals, contains`,
			"rule core.notify: conditions[1]: it must be an object with field, operator and value",
			"rule core.notify: conditions[3].operator: it must be one of equals, not_equals, contains",
			"rule core.notify: conditions[2].value: the operator equals needs a value; write value: null to mean null",
		}, nil},
		"another key": {
			`{"any":[{"field":"a","operator":"not_equals","vaule":1}]}`,
			[]string{"rule core.notify: conditions.any[0].value: the operator not_equals needs a value; write value: null to mean null"},
			[]string{"rule core.notify: conditions.any[0].vaule: it has no effect; known here is field, operator, value"},
		},
		"no text": {`[{"field":"a","operator":"contains","value":3}]`, nil, []string{
			"rule core.notify: conditions[0].value: 3 is not a text, and only a text is contained in another: it never holds",
		}},
		"beside": {
			`{"expression":"true","all":[]}`, nil,
			[]string{"rule core.notify: conditions.all: it has no effect; known here is expression"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mistakes, warnings := rule.Check("core.notify", []byte(c.conditions))
			require.Equal(t, c.mistakes, said(mistakes))
			require.Equal(t, c.warnings, said(warnings))
		})
	}
}

func said(errs []*rule.Error) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}
