package deliver_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/worker/deliver"
)

// Names that would change the behaviour of a shell are refused, unless the action declares them.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	declared := func(name string) bool {
		return name == "declared" || name == "Declared" || name == "PATH" || name == "de-clared"
	}
	for params, want := range map[string]struct{ lines, variables string }{
		`{}`: {}, `null`: {},
		`{"path":1,"x-y":{"PATH":2},"é":3,"USER":"u","_x":1,"with space":1}`: {},
		`{"PATH":"/x"}`:                {},
		`{"IFS":"x"}`:                  {lines: `the parameter "IFS" would change how a shell works`},
		`{"LD_PRELOAD":"x"}`:           {lines: `"LD_PRELOAD" would`},
		`{"BASH_ENV":"x"}`:             {lines: `"BASH_ENV" would`},
		`{"BASH ENV":"x"}`:             {lines: `"BASH ENV" would`},
		`{"ATTUNE_PARAMETER_FILE":""}`: {lines: `"ATTUNE_PARAMETER_FILE" would`},
		`{"NODE_OPTIONS":"x"}`:         {lines: `"NODE_OPTIONS" would`},
		`{"a-b":1,"a_b":2}`: {
			lines:     `the parameter "a_b" becomes the same variable as "a-b": rename it, or declare it in the parameters of the action`,
			variables: `the parameter "a_b" becomes the same variable as "a-b"`,
		},
		`{"a":1,"A":2}`:               {variables: `"a" becomes the same variable as "A"`},
		`{"declared":1,"Declared":2}`: {},
		`{"declared":1,"dEclared":2}`: {variables: `"dEclared" becomes the same variable as "declared"`},
		`{"de-clared":1,"de clared":2}`: {
			lines:     `"de clared" becomes the same variable as "de-clared"`,
			variables: `"de clared" becomes`,
		},
		`{"a.b":1,"a":{"b":2},"c":[1,2]}`: {},
	} {
		for kind, c := range map[string]struct {
			check func(json.RawMessage, func(string) bool) error
			want  string
		}{"lines": {deliver.CheckLines, want.lines}, "variables": {deliver.CheckVariables, want.variables}} {
			err := c.check(json.RawMessage(params), declared)
			if c.want == "" {
				require.NoError(t, err, "%s of %s", kind, params)
			} else {
				require.ErrorContains(t, err, c.want, "%s of %s", kind, params)
			}
		}
	}
	require.Error(t, deliver.CheckLines(json.RawMessage(`[]`), declared))
}
