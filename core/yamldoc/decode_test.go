package yamldoc_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/yamldoc"
)

// kept is a text that its type reads by itself.
type kept string

func (k *kept) UnmarshalField(r *yamldoc.Reader, f yamldoc.Field) bool {
	text, ok := r.Text(f)
	*k = kept("<" + text + ">")
	return ok
}

type form struct {
	Name   string         `yaml:"name" length:"1..5"`
	Word   string         `yaml:"word" also:"other_word" oneof:"one two"`
	Count  int32          `yaml:"count" range:"1..10"`
	Wait   int            `yaml:"wait" unit:"1ms"`
	Yes    bool           `yaml:"yes"`
	Texts  []string       `yaml:"texts"`
	Object map[string]any `yaml:"object"`
	Any    any            `yaml:"any"`
	Kept   kept           `yaml:"kept"`
	Field  yamldoc.Field  `yaml:"field" null:"keep"`
	Other  string
}

func decode(t *testing.T, r *yamldoc.Reader, text string) (form, yamldoc.Fields) {
	t.Helper()
	var into form
	roots := r.Documents([]byte(text))
	require.Len(t, roots, 1)
	given := r.Decode(roots[0], &into, nil)
	return into, given
}

func TestEveryKindOfField(t *testing.T) {
	t.Parallel()
	r := &yamldoc.Reader{File: "f"}
	var into form
	given := r.Decode(r.Documents([]byte(`
base: &base {name: no, yes: true}
<<: *base
name: 12
other_word: two
count: 0x0a
wait: 1.5
texts: [a, 2]
object: {n: 18446744073709551615, list: [1, 2.5, null]}
any: [x]
kept: k
field:
`))[0], &into, func(f yamldoc.Field) { require.Equal(t, "base", f.Name) })
	require.Empty(t, r.Mistakes)
	require.Equal(t, form{
		Name: "12", Word: "two", Count: 10, Wait: 1500, Yes: true, Texts: []string{"a", "2"}, Any: []any{"x"},
		Kept: "<k>",
		Object: map[string]any{
			"n": json.Number("18446744073709551615"), "list": []any{int64(1), json.Number("2.5"), nil},
		},
		Field: given["field"],
	}, into)
	require.Equal(t, yamldoc.Place{File: "f", Line: 5, Column: 1}, r.At(given["word"].Key))
}

func TestAllMistakesWithTheirPlaces(t *testing.T) {
	t.Parallel()
	const text = "name: toolong\nword: three\ncount: 11\nwait: soon\nyes: 1\ntexts: a\nobject: []\n" +
		"cuont: 1\nname: x\nzzzzz: 1\n[a]: b\n"
	r := &yamldoc.Reader{File: "f"}
	into, given := decode(t, r, text)
	require.Zero(t, into.Count, "an unusable value leaves its field unchanged")
	require.True(t, given["count"].Broken)
	require.False(t, given.Sound("count"))
	var texts []string
	for _, mistake := range yamldoc.Sort(r.Mistakes) {
		texts = append(texts, mistake.String())
	}
	const all = "name, word, count, wait, yes, texts, object, any, kept, field"
	require.Equal(t, []string{
		`f:1:7: name has 7 characters; it must have 1 to 5`,
		`f:2:7: word is "three"; it must be one or two`,
		`f:3:8: count is 11; it can be at most 10`,
		`f:4:7: wait is "soon"; it must be a number of seconds or a form like 1m30s`,
		`f:5:6: yes is 1; it must be true or false`,
		`f:6:8: texts must be a list of texts`,
		`f:7:9: object is a list; it must be a mapping`,
		`f:8:1: cuont is not a known key; the nearest is count`,
		`f:9:1: name is given twice, also in line 1`,
		`f:10:1: zzzzz is not a known key; known are ` + all,
		`f:11:1: a key must be a word`,
	}, texts)

	r = &yamldoc.Reader{File: "f", Strict: true}
	decode(t, r, "name: 7\nyes: secretword\ntexts: a\n")
	require.Equal(t, "2 mistakes, the first is f:1: name must be a text",
		(&yamldoc.MistakesError{Mistakes: r.Mistakes}).Error())
	require.Equal(t, "f:2: yes must be true or false", r.Mistakes[1].String())
}
