package jsonvalue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/jsonvalue"
)

func deep(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

func TestErrorsNameThePath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, want string }{
		{
			`{"a":{"b":[1,2,3,` + deep(198) + `]}}`,
			"parameters.a.b[3]" + strings.Repeat("[0]", 197) + ": nested 201 levels deep; at most 200",
		},
		{`{"a":"x","b":{"c d":"\u0000"}}`, `parameters.b["c d"]: the text contains U+0000, which cannot be stored`},
		{`{"a":["\ud83d\ude00","\ud83d"]}`, `parameters.a[1]: the text contains half of a surrogate pair`},
		{`["\udc00"]`, `parameters[0]: the text contains half of a surrogate pair`},
		{`{"n":[1,1e999999999]}`, `parameters.n[1]: the number has more than 8000 digits`},
		{`{"n":-1E-99999999999999999999}`, `parameters.n: the number has more than 8000 digits`},
		{"{\"a\":\"\xff\"}", `parameters.a: the text is not valid UTF-8`},
		{`{"a\u0000":1}`, `parameters: the text contains U+0000, which cannot be stored`},
		{`"` + strings.Repeat("x", jsonvalue.Bytes) + `"`, `parameters: 16777218 bytes as JSON; at most 16777216`},
		{`[` + strings.Repeat("1e8000,", 3000) + `0]`, `parameters: 16`},
	} {
		err := jsonvalue.Check("parameters", []byte(c.raw))
		require.Error(t, err, "%.60s", c.raw)
		text := err.Error()
		if before, after, cut := strings.Cut(text, " … "); cut {
			require.True(t, strings.HasPrefix(c.want, before) && strings.HasSuffix(c.want, after), text)
			continue
		}
		require.True(t, strings.HasPrefix(text, c.want), text)
	}
	for _, fine := range []string{
		deep(200), `{"a":[{},[],"[[[",{"b":"\\u0000"}],"c":"\ud83d\ude00 \"{"}`, `1e300`, `"\u00e4"`, `-0.5`, `null`,
		``, `{"a`, `"\`, `"\u00`,
	} {
		require.NoError(t, jsonvalue.Check("parameters", []byte(fine)), fine)
	}
}

func TestDecodedValuesHaveTheSameBound(t *testing.T) {
	t.Parallel()
	for levels, refused := range map[int]bool{200: false, 201: true} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(`{"a":`+deep(levels-1)+`}`), &value))
		err := jsonvalue.CheckValue("", value)
		require.Equal(t, refused, err != nil, err)
		require.Equal(t, refused, jsonvalue.TooDeep("x", []byte(`{"a":`+deep(levels-1)+`}`)) != nil)
		if refused {
			require.Regexp(t, `^a\[0\].*: nested 201 levels deep; at most 200$`, err.Error())
		}
	}
}

// Whatever an entrance accepts fits into a message, and a copy is left out where it does not.
func TestMessagesAreWiderThanValues(t *testing.T) {
	t.Parallel()
	body := `{"message_type":"X","payload":{"execution_id":1,"result":{"data":` + deep(jsonvalue.Depth) + `}}}`
	require.NoError(t, jsonvalue.CheckMessage([]byte(body)))
	require.Error(t, jsonvalue.CheckMessage([]byte(deep(jsonvalue.MessageDepth+1))))
	require.Error(t, jsonvalue.CheckMessage(make([]byte, jsonvalue.MessageBytes+1)))
	require.NotNil(t, jsonvalue.Copy(json.RawMessage(deep(jsonvalue.CopyDepth)), 1<<20))
	require.Nil(t, jsonvalue.Copy(json.RawMessage(deep(jsonvalue.CopyDepth+1)), 1<<20))
	require.Nil(t, jsonvalue.Copy(json.RawMessage(`"12345"`), 4))
}

// FuzzBounds checks that accepted values are within the bounds, and that no input fails otherwise.
func FuzzBounds(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,"\ud83d"]}`, `[1e99999]`, deep(300), `"\`, `{"a":{"b":"\u0000`, `}]`, `,`,
		`{,`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := jsonvalue.Check("value", raw)
		if !json.Valid(raw) || err != nil {
			return
		}
		var value any
		if json.Unmarshal(raw, &value) != nil {
			return // a number that Go cannot hold
		}
		require.NoError(t, jsonvalue.CheckValue("value", value))
	})
}
