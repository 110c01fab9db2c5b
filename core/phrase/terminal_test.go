package phrase_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/phrase"
)

const foul = "a\x1b[2J\u009b2J\x7f\u202eb\u2066\u200b\u2028\ufeff\U000e0041\r\x00é😀\nc\td"

func TestTextSteersNoTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\x1b[2J\u009b2J\x7f\u202eb\u2066\u200b\u2028\ufeff\U000e0041\r\x00é😀`+"\nc"+`\td`,
		phrase.Visible(foul))
	require.Equal(t, "plain é\n", phrase.Visible("plain é\n"))
}

func TestJSONSteersNoTerminalAndIsEqual(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	require.NoError(t, encoder.Encode(map[string]string{foul: foul}))
	escaped := phrase.JSON(out.String())
	for _, r := range escaped {
		require.True(t, !phrase.Steers(r) || r == '\n' || r == '\t', "%q", r)
	}
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(escaped), &back))
	require.Equal(t, map[string]string{foul: foul}, back)
	require.Contains(t, escaped, `\udb40\udc41`)
	require.Equal(t, "\xff{}", phrase.JSON("\xff{}"), "invalid UTF-8 stays")
}
