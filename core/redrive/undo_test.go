package redrive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

// TestAnUndoSaysWhatItDoesNotTakeBack: what a move sent stays, and what a killed program
// had in hand may be there already.
func TestAnUndoSaysWhatItDoesNotTakeBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.queue("parked", nil)
	s.letters(s.expired(3)...)
	moved := s.run(Order{Do: DoMove, Letters: s.snapshot().Letters, Key: "parked"})
	p, err := s.Plan(s.ctx, Order{Do: DoUndo, Op: moved.Op})
	require.NoError(t, err)
	require.Equal(t, DoMove, p.Undoes)
	require.Zero(t, p.Unsure)

	s.dies("redrive:undone", DoUndo, moved.Op) // at the second, which is back
	s.becomes(message.QueueDeadLetter, 2)
	p, err = s.Plan(s.ctx, Order{Do: DoUndo, Op: moved.Op})
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{p.Work(), p.Unsure}, "the one in hand may be there twice, the first is not put back again")
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, 2, r.Done)
	s.becomes(message.QueueDeadLetter, 4)
	s.becomes("parked", 3)
}

// TestAPutBackThatNobodyAnsweredIsUnsure.
func TestAPutBackThatNobodyAnsweredIsUnsure(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(3)...)
	gone := s.run(Order{Do: DoPurge})
	w := s.overWire()
	p, err := s.Plan(s.ctx, Order{Do: DoUndo, Op: gone.Op})
	require.NoError(t, err)
	r := s.runs(p, 1, w.hold)
	require.Equal(t, []int{1, 1, 1}, []int{r.Done, r.Unknown, r.Left})
	w.cut()
	s.Desk = s.desk()
	p, err = s.Plan(s.ctx, Order{Do: DoUndo, Op: gone.Op})
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{p.Work(), p.Unsure})
}
