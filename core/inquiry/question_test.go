package inquiry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
)

func TestAQuestionIsReadFromAResult(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result string
		want   *inquiry.Question
		fault  string
	}{
		"a prompt": {
			result: `{"__inquiry": {"prompt": "go on?"}}`,
			want:   &inquiry.Question{Prompt: "go on?"},
		},
		"all of it": {
			result: `{"__inquiry": {"prompt": "p", "response_schema": {"type": "object"}, "assigned_to": 7, "timeout_seconds": 90}}`,
			want: &inquiry.Question{
				Prompt: "p", Schema: json.RawMessage(`{"type": "object"}`),
				AssignedTo: new(int64(7)), Timeout: 90 * time.Second,
			},
		},
		"numbers as templates leave them": {
			result: `{"__inquiry": {"prompt": "p", "assigned_to": "7", "timeout_seconds": 60.0}}`,
			want:   &inquiry.Question{Prompt: "p", AssignedTo: new(int64(7)), Timeout: time.Minute},
		},
		"no object":       {result: `{"__inquiry": "go on?"}`, fault: "not an object"},
		"no prompt":       {result: `{"__inquiry": {}}`, fault: "prompt must be a text"},
		"an empty prompt": {result: `{"__inquiry": {"prompt": " "}}`, fault: "prompt must be a text"},
		"a number":        {result: `{"__inquiry": {"prompt": 7}}`, fault: "prompt must be a text"},
		"no schema": {
			result: `{"__inquiry": {"prompt": "p", "response_schema": true}}`,
			fault:  "response_schema",
		},
		"a name":  {result: `{"__inquiry": {"prompt": "p", "assigned_to": "alice"}}`, fault: "assigned_to"},
		"nobody":  {result: `{"__inquiry": {"prompt": "p", "assigned_to": 0}}`, fault: "assigned_to"},
		"no time": {result: `{"__inquiry": {"prompt": "p", "timeout_seconds": 0}}`, fault: "timeout_seconds"},
		"half a second": {
			result: `{"__inquiry": {"prompt": "p", "timeout_seconds": 0.5}}`,
			fault:  "timeout_seconds",
		},
		"longer than lives": {
			result: `{"__inquiry": {"prompt": "p", "timeout_seconds": 1e12}}`,
			fault:  "timeout_seconds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var result map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(test.result), &result))
			q, err := inquiry.Parse(result[inquiry.KeyAsk])
			if test.fault != "" {
				require.ErrorIs(t, err, inquiry.ErrMalformed)
				require.ErrorContains(t, err, test.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, *test.want, q)
		})
	}
}

func TestTheQuestionOfATaskIsItsParameters(t *testing.T) {
	t.Parallel()
	q, err := inquiry.FromConfig(nil, time.Hour)
	require.NoError(t, err)
	require.Equal(t, inquiry.Question{Prompt: inquiry.DefaultPrompt, Timeout: time.Hour}, q)

	q, err = inquiry.FromConfig(
		json.RawMessage(`{"prompt": "deploy?", "assigned_to": 3, "response_schema": {"ok": {"type": "boolean"}}, "timeout_seconds": 5}`), 0)
	require.NoError(t, err)
	require.Equal(t, inquiry.Question{
		Prompt: "deploy?", AssignedTo: new(int64(3)),
		Schema: json.RawMessage(`{"ok": {"type": "boolean"}}`),
	}, q,
		"for how long is said by its task")

	for config, fault := range map[string]string{
		`{"promt": "deploy?"}`:                                         "core.ask has no parameter promt: did you mean prompt?",
		`{"colour": "red"}`:                                            "core.ask has no parameter colour: it has prompt, response_schema, assigned_to",
		`{"response_schema": {"ok": {"type": "bool"}}}`:                "response_schema: ok: type bool is not understood",
		`{"response_schema": {"ok": {"type": "string", "minlen": 3}}}`: "response_schema: ok: minlen is not understood",
	} {
		_, err = inquiry.FromConfig(json.RawMessage(config), 0)
		require.ErrorIs(t, err, inquiry.ErrMalformed, config)
		require.ErrorContains(t, err, fault)
	}
	q, err = inquiry.FromConfig(inquiry.Inherited(json.RawMessage(`{"prompt": "deploy?", "cart": 7}`)), 0)
	require.NoError(t, err, "a result that a workflow passes on is no question")
	require.Equal(t, inquiry.Question{Prompt: "deploy?"}, q)

	for _, config := range []string{`[]`, `{"prompt": ["a"]}`, `{"assigned_to": {}}`} {
		_, err = inquiry.FromConfig(json.RawMessage(config), 0)
		require.ErrorIs(t, err, inquiry.ErrMalformed, config)
	}
	_, err = inquiry.FromConfig(nil, -time.Second)
	require.ErrorIs(t, err, inquiry.ErrMalformed)
}

func TestTheResultOfAnAskingExecution(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"inquiry_id": 7, "status": "pending"}`, string(inquiry.Question{ID: 7}.Waiting()))
}
