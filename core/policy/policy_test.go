package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/attune-go/attune/core/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGroupKey(t *testing.T) {
	t.Parallel()
	params := policy.WithDefaults(
		[]byte(`{"environment":"prod","target":{"region":"us-east-1","id":10000000000000001},"html":"<a&b>"}`), nil)
	for _, tc := range []struct {
		name  string
		paths []string
		want  string
	}{
		{"sorted and compact, as documented", []string{"target.region", "environment"}, `{"environment":"prod","target.region":"us-east-1"}`},
		{"missing is null", []string{"nope", "target.nope", "environment.deeper"}, `{"environment.deeper":null,"nope":null,"target.nope":null}`},
		{"large integers stay exact", []string{"target.id"}, `{"target.id":10000000000000001}`},
		{"objects are values too", []string{"target"}, `{"target":{"id":10000000000000001,"region":"us-east-1"}}`},
		{"no HTML escapes", []string{"html"}, `{"html":"<a&b>"}`},
		{"a path named twice counts once", []string{"environment", "environment"}, `{"environment":"prod"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			key, grouped := policy.GroupKey(tc.paths, params)
			require.True(t, grouped)
			require.Equal(t, tc.want, key)
		})
	}
	_, grouped := policy.GroupKey(nil, params)
	require.False(t, grouped, "a policy without parameters has one queue")
}

func TestWithDefaultsFillsMissingAndNullOnly(t *testing.T) {
	t.Parallel()
	got := policy.WithDefaults(
		[]byte(`{"a":1,"b":null}`),
		[]byte(`{"a":{"default":9},"b":{"default":"x"},"c":{"default":false},"d":{"type":"string"},"e":"odd"}`))
	require.Len(t, got, 3)
	require.Equal(t, "x", got["b"])
	require.Equal(t, false, got["c"])
	require.Equal(t, json.Number("1"), got["a"])
	require.Empty(t, policy.WithDefaults([]byte(`[1]`), []byte(`broken`)), "what is not an object counts as empty")
}

func TestOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, policy.None, policy.Of(nil))
	limit := policy.Of(&policy.Policy{Ref: "core.one", Threshold: 3, Method: policy.MethodCancel, Parameters: []string{"a"}})
	require.Equal(t, policy.Limit{Max: 3, Method: policy.MethodCancel, Parameters: []string{"a"}, PolicyRef: "core.one"}, limit)
}
