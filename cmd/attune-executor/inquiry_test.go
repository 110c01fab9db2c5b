package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// typed answers an inquiry with these lines of a terminal, and returns the questions too.
func typed(form, lines string, hidden ...string) (response, asked string, err error) {
	var out bytes.Buffer
	p := &prompter{in: bufio.NewReader(strings.NewReader(lines)), out: &out}
	if len(hidden) > 0 {
		p.hidden = func() (string, error) {
			text := hidden[0]
			hidden = hidden[1:]
			return text, nil
		}
	}
	raw, err := p.ask("deploy\x1b?", json.RawMessage(form))
	return string(raw), out.String(), err
}

func TestThePromptAsksForTheFieldsOfTheSchema(t *testing.T) {
	t.Parallel()
	flat := `{"approved": {"type": "boolean", "required": true}, "by": {"type": "string", "enum": ["ada", "bob"], "description": "Who"},
		"count": {"type": "integer", "default": 3, "maximum": 9}, "token": {"type": "string", "secret": true}}`
	document := `{"type": "object", "required": ["approved"], "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}}}`
	for name, test := range map[string]struct {
		form, lines string
		hidden      []string
		want        string
		asked       []string
	}{
		"all of it": {
			flat, "y\nbob\n7\ny\n",
			[]string{"hunter2"},
			`{"approved": true, "by": "bob", "count": 7, "token": "hunter2"}`,
			[]string{
				`deploy\x1b?` + "\n", "approved (yes or no; required): ", "by - Who (one of ada, bob): ",
				"count (a whole number, at most 9; default 3): ", "token (text): ",
			},
		},
		"what is left out": {flat, "no\n\n\n\ny\n", nil, `{"approved": false, "count": 3}`, nil},
		"what does not fit is asked again": {
			flat, "\nperhaps\nyes\neve\nada\nmany\n10\n9\n\ny\n", nil, `{"approved": true, "by": "ada", "count": 9}`,
			[]string{"it is required", "say yes or no"},
		},
		"a document":    {document, "y\nafter lunch\nyes\n", nil, `{"approved": true, "note": "after lunch"}`, nil},
		"one value":     {`{"type": "boolean"}`, "n\ny\n", nil, `false`, []string{"answer (yes or no; required): "}},
		"one of a few":  {`{"type": "string", "enum": ["a", "b"]}`, "c\nb\ny\n", nil, `"b"`, nil},
		"anything":      {`null`, "{\"a\": 1}\ny\n", nil, `{"a": 1}`, nil},
		"anything said": {`null`, "why not\ny\n", nil, `"why not"`, nil},
		"no newline":    {`null`, "1\ny", nil, `1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, asked, err := typed(test.form, test.lines, test.hidden...)
			require.NoError(t, err, asked)
			require.JSONEq(t, test.want, got)
			for _, text := range test.asked {
				require.Contains(t, asked, text)
			}
			require.NotContains(t, asked, "hunter2")
		})
	}
	for name, lines := range map[string]string{
		"does not confirm": "y\n\nn\n", "leaves": "y\n", "never fits": strings.Repeat("perhaps\n", 10),
	} {
		_, _, err := typed(document, lines)
		var coded *exitError
		require.ErrorAs(t, err, &coded, name)
		require.Equal(t, exitRefused, coded.code, name)
		require.ErrorContains(t, err, "nothing was answered", name)
	}
}
