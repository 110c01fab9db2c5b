package handover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cache that overflows in the middle of a round keeps what the round has
// read: an action that exists must not look deleted.
func TestAnOverflowingCacheKeepsTheRulesInUse(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRules(func() time.Time { return now })
	for id := range int64(maxCachedRules + 1) {
		r.byID[id] = cachedRule{read: now.Add(-time.Hour)}
	}
	r.byRef["pk.old"] = 1
	r.byID[7] = cachedRule{read: now.Add(-time.Second)}
	r.byRef["pk.used"] = 7
	r.evict()
	require.Len(t, r.byID, 1)
	_, ok := r.find(nil, "pk.used")
	require.True(t, ok)
	_, ok = r.find(nil, "pk.old")
	require.False(t, ok)
}
