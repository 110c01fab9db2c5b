package screen_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/screen"
)

// sorted is a list that can be sorted.
type sorted struct{ screen.Sorted }

func (s *sorted) SetOrder(order screen.Order) { s.Sort(order) }

func TestAnOrderIsWrittenAndReadBack(t *testing.T) {
	t.Parallel()
	s := &sorted{screen.NewSorted("head", "queued", "running first")}
	require.Empty(t, screen.OrderText(s), "what a view begins with needs no words")
	for _, want := range []screen.Order{{}, {Reverse: true}, {Column: 1}, {Column: 2, Reverse: true}} {
		s.SetOrder(want)
		got, ok := screen.ReadOrder(s, screen.OrderText(s))
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	s.SetOrder(screen.Order{Column: 3})
	s.SetOrder(screen.Order{Column: -1})
	require.Equal(t, "running first", s.SortKey(), "there is no such column")
	got, ok := screen.ReadOrder(s, " Queued reversed ")
	require.True(t, ok)
	require.Equal(t, screen.Order{Column: 1, Reverse: true}, got)
	_, ok = screen.ReadOrder(s, "depth")
	require.False(t, ok)
}
