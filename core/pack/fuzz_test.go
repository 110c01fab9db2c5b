package pack_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/policy"
)

// storable is the constraint on policy.ref.
var storable = regexp.MustCompile(`^[^.]+\.[^.]+$`)

// FuzzPolicyFile checks that the parser ends with any file, places all mistakes, and accepts nothing that the table
// refuses.
func FuzzPolicyFile(f *testing.F) {
	for _, seed := range []string{
		"ref: a.b\nthreshold: 1\n",
		"ref: a.b\nkind: rate\nthreshold: 5\nwindow: 1m\nburst: 2\nparameters: [a.b, c]\n",
		"policies:\n  - &x {ref: a.b, threshold: 2, action: a.x, adaptive: {min: 1, latency: 2s}}\n  - {<<: *x, ref: a.c}\n",
		"---\n---\nref: [",
		`{"ref": "a.b", "kind": "quota", "window_seconds": 60, "threshold": 3, "max_queue_length": 4}`,
		"&a [*a]\n", "<<: {<<: {ref: a.b}}\nthreshold: 0x7fffffff\n", "threshold: .nan\nwindow: -.inf\nref: \"a.\\0\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		policies, mistakes := pack.Parse("f", content)
		require.Equal(t, pack.Sort(mistakes), mistakes)
		for _, mistake := range mistakes {
			require.Equal(t, "f", mistake.Place.File)
			require.NotContains(t, mistake.String(), "\n")
		}
		for _, p := range policies {
			require.Positive(t, p.Place.Line)
			if len(mistakes) == 0 {
				requireStorable(t, p)
			}
		}
		set := &pack.Set{Policies: policies}
		set.Scopes()
		set.Check(pack.World{})
		pack.Duplicates(policies)
	})
}

// requireStorable holds a policy against the constraints of the table.
func requireStorable(t *testing.T, p pack.Policy) {
	t.Helper()
	require.Regexp(t, storable, p.Ref)
	require.Equal(t, strings.ToLower(p.Ref), p.Ref)
	require.Positive(t, p.Threshold)
	require.Contains(t, []policy.Kind{policy.KindConcurrency, policy.KindRate, policy.KindQuota}, p.Kind)
	require.Contains(t, []policy.Method{policy.MethodEnqueue, policy.MethodCancel}, p.Method)
	require.Contains(t, []policy.Place{"", policy.PlaceBack, policy.PlaceFront}, p.RetryPlace)
	require.Equal(t, p.Kind == policy.KindConcurrency, p.WindowSeconds == 0)
	require.True(t, p.Burst == 0 || p.Kind == policy.KindRate)
	require.LessOrEqual(t, p.AdaptiveMin, p.Threshold)
	for _, number := range []int32{
		p.WindowSeconds, p.Burst, p.MaxQueueLength, p.QueueTimeoutSeconds, p.AdaptiveMin, p.AdaptiveLatencyMS,
	} {
		require.GreaterOrEqual(t, number, int32(0))
		require.LessOrEqual(t, int(number), math.MaxInt32)
	}
	for _, text := range slices.Concat(p.Tags, p.Parameters, []string{p.Ref, p.Name, p.Description, p.Action, p.Pack}) {
		require.NotContains(t, text, "\x00")
	}
}
