package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An action has one scheduler, and actions are spread over all of them.
func TestActionsAreSpread(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 8; n++ {
		seen := map[int]int{}
		for i := range 1000 {
			action := fmt.Sprintf("pack.action_%d", i)
			at := LaneOf(action, n)
			require.Equal(t, at, LaneOf(action, n))
			seen[at]++
		}
		require.Len(t, seen, n)
		for at, actions := range seen {
			require.GreaterOrEqual(t, at, 0)
			require.Less(t, at, n)
			require.Greater(t, actions, 1000/n/2)
		}
	}
}

// Values are taken in the order in which they were put, and none stays without a token.
func TestABoxKeepsOrder(t *testing.T) {
	t.Parallel()
	b := NewBox[int]()
	require.Nil(t, b.Take(3))
	const all = 10_000
	go func() {
		for i := 0; i < all; i += 2 {
			b.Put(i, i+1)
		}
	}()
	for next := 0; next < all; {
		<-b.Wake()
		for _, got := range b.Take(3) {
			require.Equal(t, next, got)
			next++
		}
	}
	require.Zero(t, b.Len())
	b.Put(1, 2, 3, 4)
	taken := b.Take(1)
	b.Keep(func(n int) bool { return n%2 == 0 })
	b.Put(6)
	require.Equal(t, []int{1}, taken)
	require.Equal(t, []int{2, 4, 6}, b.Take(9))
}
