package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
)

// A parameter that the action marks as secret is not shown, even if the row has it in plain text.
func TestSecretsInTheClearAreNotShown(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.Store, "probe.leak", func(row *testkit.ActionRow) {
		row.ParamSchema = map[string]any{
			"token": map[string]any{"secret": true},
			"user":  map[string]any{"type": "string"},
		}
	})
	testkit.Exec(t, b.Store,
		`UPDATE action SET out_schema = '{"type":"object","properties":{"key":{"secret":true}}}' WHERE id = $1`,
		action.ID)
	const marker = `{"$attune_secret":true,"redacted":true}`
	for name, c := range map[string]struct {
		config, result, wantConfig, wantResult string
		unlinked                               bool
	}{
		"both": {
			`{"token":"hunter2","user":"u","n":12345678901234567890}`, `{"data":{"key":"hunter2","x":1},"stdout":"s"}`,
			`{"token":` + marker + `,"user":"u","n":12345678901234567890}`,
			`{"data":{"key":` + marker + `,"x":1},"stdout":"s"}`, false,
		},
		"by the ref":     {`{"token":"hunter2"}`, `{}`, `{"token":` + marker + `}`, `{}`, true},
		"nothing secret": {`{"user":"u"}`, `{"data":"text"}`, `{"user":"u"}`, `{"data":"text"}`, false},
		"markers": {
			`{"token":` + marker + `}`, `{"error":"x"}`, `{"token":` + marker + `}`, `{"error":"x"}`,
			false,
		},
		"too long to look": {
			`{"token":"hunter2","user":"` + strings.Repeat("x", monitor.MaxDocument) + `"}`, `{}`,
			`"(too long to be shown: it may hold secrets)"`, `{}`, false,
		},
	} {
		e := testkit.Execution(t, b.Store, action,
			func(row *testkit.ExecutionRow) { row.Config = json.RawMessage(c.config) })
		testkit.Exec(t, b.Store, "UPDATE execution SET result = $2 WHERE id = $1", e.ID, c.result)
		if c.unlinked {
			testkit.Exec(t, b.Store, "UPDATE execution SET action = NULL WHERE id = $1", e.ID)
		}
		d, err := b.Execution(t.Context(), e.ID)
		require.NoError(t, err, name)
		require.JSONEq(t, c.wantConfig, d.Config, name)
		require.JSONEq(t, c.wantResult, d.Result, name)
	}
}
