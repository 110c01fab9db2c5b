package admission

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/policy"
)

// An operator's text names the same group as the parameters of an execution,
// however it is spaced and ordered.
func TestGroupKeyIsThatOfThePolicy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, params string
		paths        []string
	}{
		{` { "tenant" : "a" } `, `{"tenant":"a","more":1}`, []string{"tenant"}},
		{
			`{"target.region":"eu","environment":"prod"}`, `{"environment":"prod","target":{"region":"eu"}}`,
			[]string{"target.region", "environment"},
		},
		{
			`{"id":10000000000000001,"html":"<a&b>","none":null,"f":1.50}`,
			`{"id":10000000000000001,"html":"<a&b>","f":1.50}`,
			[]string{"none", "id", "html", "f"},
		},
		{
			`{"one":1.0,"many":{"n":[1e2]},"a.b":"x"}`, `{"one":1,"many":{"n":[100.0]},"a":{"b":"x"}}`,
			[]string{"one", "many", "a.b"},
		},
		{`{"target":{"b":[1, 2],"a":"\u00e4"}}`, `{"target":{"a":"ä","b":[1,2]}}`, []string{"target"}},
	} {
		want, _ := policy.GroupKey(tc.paths, policy.WithDefaults([]byte(tc.params), nil))
		got, err := groupKey(tc.text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, Target{Group: got, parameters: tc.paths}.Fits())
		require.ErrorIs(t, Target{Group: got, parameters: append(tc.paths, "other")}.Fits(), ErrGroup)
		require.ErrorIs(t, Target{Group: got}.Fits(), ErrNoQueue)
	}
	for _, text := range []string{
		"", "null", "[]", "5", `"a"`, `{"a":1`, `{"a":1} x`, `{"a":1}{}`, `{"a":1}}`,
		`{"a":1}]`,
	} {
		_, err := groupKey(text)
		require.ErrorIs(t, err, ErrGroup, text)
	}
}

func TestAdaptedLimits(t *testing.T) {
	t.Parallel()
	low, high := 2.9, 50.0
	require.Equal(t, 7, adapted(7, nil))
	require.Equal(t, 2, adapted(7, &low))
	require.Equal(t, 7, adapted(7, &high), "adaptation only ever lowers")
	low = 0.2
	require.Equal(t, 1, adapted(7, &low))
}
