package redrive

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// TestLettersAreRequeuedInTheOrderOfTheirExecutions: whoever was requested first is
// requested first again, of whichever action, however they died and were marked.
func TestLettersAreRequeuedInTheOrderOfTheirExecutions(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(7)
	testkit.Exec(t, s.store, `insert into action (ref, pack, pack_ref, label, entrypoint) select 'pk.b', id, ref, 'B', 'b.sh' from pack where ref = 'pk'`)
	testkit.Exec(t, s.store, `update execution set action_ref = 'pk.b', action = (select id from action where ref = 'pk.b') where id % 2 = 0`)
	handled := ids[3] // whose letter a handler took
	s.letters(ids[4], ids[0], ids[6], ids[2], ids[1], ids[5])
	letters := s.snapshot().Letters
	slices.Reverse(letters)
	r := s.run(Order{Do: DoRequeue, Letters: letters, Rows: []int64{handled}})
	require.Equal(t, []int{7, 0}, []int{r.Done, r.After})
	var order []int64
	for _, d := range s.drain(requests) {
		e, err := message.Decode[message.ExecutionRequested](d.Body)
		require.NoError(t, err)
		order = append(order, e.Payload.ExecutionID)
	}
	require.Equal(t, ids, order)
}
