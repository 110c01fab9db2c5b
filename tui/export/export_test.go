package export

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/phrase"
)

func TestTheClipboardIsReachedThroughMultiplexers(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString([]byte("884301"))
	plain := "\x1b]52;c;" + encoded + "\a"
	for name, want := range map[string]struct {
		environ []string
		text    string
	}{
		"a terminal":  {[]string{"TERM=xterm", "TMUX="}, plain},
		"inside tmux": {[]string{"TMUX=/tmp/tmux-0/default,1,0"}, plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"},
		"inside screen": {
			[]string{"STY=1.pts"}, "\x1bP" + plain + "\x1b\\",
		},
	} {
		got, err := Clipboard("884301", WithinOf(want.environ))
		require.NoError(t, err, name)
		require.Equal(t, want.text, got, name)
	}
	_, err := Clipboard(strings.Repeat("x", MaxCopy), Within{})
	require.NoError(t, err)
	_, err = Clipboard(strings.Repeat("x", MaxCopy+1), Within{})
	tooLong, ok := errors.AsType[*TooLongError](err)
	require.True(t, ok)
	require.Equal(t, MaxCopy+1, tooLong.Bytes)
	require.ErrorContains(t, err, "74995 bytes")
}

func TestJSONIsMaskedInertAndExact(t *testing.T) {
	t.Parallel()
	got, err := JSON(map[string]any{
		"id":     json.Number("9007199254740993"),
		"config": `{"url":"https://a:b@c/","headers":{"authorization":"Bearer abc"}}`,
		"cut":    `{"api_key":"abc","rest":"to`, "token": []string{"abc"},
		"text": "a\x1b[2J\u202e\u200b\U000E0041 <b> \"quoted\" {",
		"deep": `{"inner":"{\"password\":\"abc\"}"}`,
	})
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(got)), got)
	require.NotContains(t, got, "abc")
	require.NotContains(t, got, ":b@")
	require.Contains(t, got, "9007199254740993")
	require.NotContains(t, got, "\n")
	require.Contains(t, got, `\u202e\u200b\udb40\udc41 <b> \"quoted\" {`)
	for _, r := range got {
		require.False(t, phrase.Steers(r), "%U", r)
	}
	var back struct {
		Text string `json:"text"`
	}
	require.NoError(t, json.Unmarshal([]byte(got), &back))
	require.Equal(t, "a\x1b[2J\u202e\u200b\U000E0041 <b> \"quoted\" {", back.Text, "nothing is lost")
	_, err = JSON(func() {})
	require.Error(t, err)
}

type base struct {
	ID   int64 `json:"id"`
	Skip int   `json:"-"`
}

type sample struct {
	base
	Name  string          `json:"name,omitempty"`
	Tags  []string        `json:"tags"`
	Inner struct{ X int } `json:"inner"`
	Bare  *int
}

func TestCSVHasTheColumnsOfTheType(t *testing.T) {
	t.Parallel()
	columns := columnsOf(&sample{})
	require.Equal(t, []string{"id", "name", "tags", "inner", "Bare"}, columns)
	line, err := JSON(sample{
		base: base{ID: 9007199254740993}, Name: "=cmd|' /C calc'!A0",
		Tags: []string{"a,b", "c\"d"},
	})
	require.NoError(t, err)
	cells, err := record(columns, line)
	require.NoError(t, err)
	require.Equal(t, []string{"9007199254740993", "'=cmd|' /C calc'!A0", `["a,b","c\"d"]`, `{"X":0}`, ""}, cells)
	out, err := csvLine(cells)
	require.NoError(t, err)
	require.Equal(t, "9007199254740993,'=cmd|' /C calc'!A0,\"[\"\"a,b\"\",\"\"c\\\"\"d\"\"]\",\"{\"\"X\"\":0}\",\n",
		out)
	require.Equal(t, []string{"b", "a"}, columnsOf(json.RawMessage(`{"b":1,"a":{"c":2}}`)), "a document has its own")
	require.Empty(t, columnsOf("text"))
	_, err = record(columns, "text")
	require.Error(t, err)
	require.Equal(t, "-3.5", cell(json.RawMessage(`"-3.5"`)), "a number is none")
	require.Equal(t, "'-x", cell(json.RawMessage(`"-x"`)))
	require.Equal(t, "ab", cell(json.RawMessage(`"a\u001bb"`)))
}

func TestAFileIsPrivateAndCompleteOrMissing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "exports", "a.jsonl")
	f, err := create(path)
	require.NoError(t, err)
	require.NoError(t, f.write("one\n"))
	taken, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, taken, "what is not whole has not the name")
	_, err = create(path)
	require.ErrorContains(t, err, "exists")
	require.NoError(t, f.finish())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "one\n", string(whole))
	require.EqualValues(t, 4, f.size)
	about, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), about.Mode().Perm())
	_, err = create(path)
	exists, ok := errors.AsType[*ExistsError](err)
	require.True(t, ok)
	require.Equal(t, path, exists.Path)
	require.NoFileExists(t, path+partSuffix)

	require.NoError(t, os.Symlink(path, path+".link"))
	_, err = create(path + ".link")
	require.Error(t, err, "a link is not followed to what it leads to")
}

func TestAnIncompleteFileSaysSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	f, err := create(path)
	require.NoError(t, err)
	require.NoError(t, f.write("one\n"))
	require.Equal(t, path+".part", f.abandon())
	require.NoFileExists(t, path)
	kept, err := os.ReadFile(path + ".part")
	require.NoError(t, err)
	require.Equal(t, "one\n", string(kept))
	_, err = create(path)
	require.ErrorContains(t, err, ".part exists")
	require.NoFileExists(t, path)

	empty, err := create(path + "2")
	require.NoError(t, err)
	require.Empty(t, empty.abandon())
	require.NoFileExists(t, path+"2.part")
}

func TestAQueryNamesNoPassword(t *testing.T) {
	t.Parallel()
	require.Equal(t, `psql "$ATTUNE__DATABASE__URL" -x -c 'SELECT * FROM attune.rule WHERE ref = '\''it'\'''\''s'\'''`,
		Query("attune", "rule", "ref = 'it''s'"))
	require.Equal(t, "text\nwith lines", Plain("te\x1bxt\nwith\u202e lines"))
}
