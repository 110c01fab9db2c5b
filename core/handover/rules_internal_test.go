package handover

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A round under way keeps the book it planned by, whatever becomes of the
// cache: an action that vanished from it would count as deleted.
func TestABookOutlivesTheChangesOfTheRules(t *testing.T) {
	t.Parallel()
	r := &rules{}
	planned := r.book()
	for id := range int64(maxCachedRules + 1) {
		planned.byID[id] = Rule{ActionID: id}
	}
	require.NotSame(t, planned, r.book(), "a full book is closed")
	r.turn(7)
	now := r.book()
	require.Equal(t, int64(7), now.epoch)
	r.turn(7)
	require.Same(t, now, r.book(), "the same count does not begin a new one")
	id := int64(3)
	_, ok := planned.find(&id, "")
	require.True(t, ok)
	_, ok = now.find(&id, "")
	require.False(t, ok)
}
