package redrive

import (
	"bytes"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// ledgered is what the ledger says of letters, by the ids of their messages.
func (s *site) ledgered() map[string]string {
	s.t.Helper()
	rows, err := s.store.Pool().Query(s.ctx, `select coalesce(message_id, '-'), coalesce(decision, 'waiting') || ' by ' || coalesce(decided_by, 'nobody') from dead_letter`)
	require.NoError(s.t, err)
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var id, says string
		require.NoError(s.t, rows.Scan(&id, &says))
		all[id] = says
	}
	require.NoError(s.t, rows.Err())
	return all
}

// TestWhatIsRemovedIsInTheLedgerFirst: as discarded or purged, by whom, and it waits
// again when it is put back.
func TestWhatIsRemovedIsInTheLedgerFirst(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, nil)
	s.letters(1, 2, 3, 4)
	letters := s.snapshot().Letters
	p, err := s.Plan(s.ctx, Order{Do: DoDiscard, Letters: letters[:2]})
	require.NoError(t, err)
	require.True(t, p.Ledger && p.Spool)
	discarded := s.run(Order{Do: DoDiscard, Letters: letters[:2]})
	require.Equal(t, 2, discarded.Done)
	require.True(t, discarded.Ledger && discarded.Undoable)
	require.Equal(t, map[string]string{"m1": "discarded by ann@desk", "m2": "discarded by ann@desk"}, s.ledgered())
	var body, note string
	require.NoError(t, s.store.Pool().QueryRow(s.ctx, `select convert_from(body, 'utf8'), evidence->'decisions'->0->>'note' from dead_letter where message_id = 'm1'`).Scan(&body, &note))
	require.Equal(t, string(letters[0].Body), body)
	require.Equal(t, "because", note)

	purged := s.run(Order{Do: DoPurge})
	require.Equal(t, 2, purged.Done)
	require.Equal(t, "purged by ann@desk", s.ledgered()["m4"])

	back := s.run(Order{Do: DoUndo, Op: discarded.Op})
	require.Equal(t, 2, back.Done)
	require.Equal(t, map[string]string{
		"m1": "waiting by nobody", "m2": "waiting by nobody", "m3": "purged by ann@desk", "m4": "purged by ann@desk",
	}, s.ledgered())
	s.run(Order{Do: DoPurge})
	require.Equal(t, "waiting by nobody", s.ledgered()["m1"], "what the ledger has stays as it stands there")
}

// TestALetterIsNotRemovedWithoutTheLedger: what cannot be written down stays.
func TestALetterIsNotRemovedWithoutTheLedger(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, nil)
	s.letters(1, 2)
	letters := s.snapshot().Letters
	testkit.Exec(t, s.store, `alter table dead_letter add constraint full_up check (message_id <> 'm2')`)
	p, err := s.Plan(s.ctx, Order{Do: DoDiscard, Letters: letters})
	require.NoError(t, err)
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{r.Done, r.Failed})
	require.Contains(t, r.Errors[0], "full_up")
	require.Equal(t, map[string]string{"m1": "discarded by ann@desk"}, s.ledgered())
	s.becomes(message.QueueDeadLetter, 1)
	back := s.run(Order{Do: DoUndo, Op: r.Op})
	require.Equal(t, 1, back.Done, "what stayed is not put back a second time")
	s.becomes(message.QueueDeadLetter, 2)
}

// TestTheLedgerTakesWhatNobodyCanRead: with texts that the database has no place for.
func TestTheLedgerTakesWhatNobodyCanRead(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, nil)
	s.send(amqp.Publishing{MessageId: "odd\x00", Type: "a\x00b", Headers: amqp.Table{"k": "\x00\xff"}, Body: []byte("\x00\xff not json")})
	s.send(amqp.Publishing{Body: []byte("plain")})
	r := s.run(Order{Do: DoPurge})
	require.Equal(t, 2, r.Done)
	require.Len(t, s.ledgered(), 2)
}

// TestTheLedgerIsEnoughWithoutASpool: and without either nothing is removed.
func TestTheLedgerIsEnoughWithoutASpool(t *testing.T) {
	t.Parallel()
	off := func(c *Config) { c.Spool = "" }
	s := newSiteOf(t, true, nil, off)
	s.letters(1, 2, 3)
	letters := s.snapshot().Letters
	r := s.run(Order{Do: DoDiscard, Letters: letters[:1]})
	require.Equal(t, 1, r.Done)
	require.True(t, r.Ledger)
	require.False(t, r.Undoable)
	r = s.run(Order{Do: DoPurge})
	require.Equal(t, 2, r.Done)
	require.Len(t, s.ledgered(), 3)
	s.send(amqp.Publishing{MessageId: "large", Body: bytes.Repeat([]byte("x"), deadletter.MaxBody+1)})
	p, err := s.Plan(s.ctx, Order{Do: DoDiscard, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	large, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{large.Done, large.Failed}, "the ledger would cut it")
	require.Contains(t, large.Errors[0], "more than the ledger keeps")
	s.becomes(message.QueueDeadLetter, 1)
	require.Len(t, s.ledgered(), 3)
	_, err = s.Plan(s.ctx, Order{Do: DoMove, Letters: letters, Key: requests})
	require.ErrorIs(t, err, errNoSpool, "what is moved is decided by nobody")

	others := newSite(t, nil, off)
	_, err = others.Plan(others.ctx, Order{Do: DoPurge})
	require.ErrorIs(t, err, errNoSpool)
}

// TestAHandlerKnowsWhatAPersonRemoved: the same death has the same name for both.
func TestAHandlerKnowsWhatAPersonRemoved(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, nil)
	w := dispatched(t, 7)
	d := deliveries([]*Whole{w})
	note := deadletter.Removal{Decision: deadletter.Discarded, By: "ann@desk", Note: "n", Op: "o"}
	require.NoError(t, deadletter.Keep(s.ctx, s.store, d, note))
	require.NoError(t, deadletter.Keep(s.ctx, s.store, append(d, &broker.Delivery{MessageID: "other", Redelivered: true}), note))
	require.Len(t, s.ledgered(), 2, "once, however often it is delivered")
}

// TestTheLedgerIsToldBeforeALetterIsPutBack: a handler that takes it at once would drop
// what stands there as decided.
func TestTheLedgerIsToldBeforeALetterIsPutBack(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, nil)
	s.letters(1)
	gone := s.run(Order{Do: DoDiscard, Letters: s.snapshot().Letters})
	require.Equal(t, 1, gone.Done)
	testkit.Exec(t, s.store, `alter table dead_letter add constraint stays check (decision is not null)`)
	p, err := s.Plan(s.ctx, Order{Do: DoUndo, Op: gone.Op})
	require.NoError(t, err)
	back, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{back.Done, back.Failed})
	require.Zero(t, s.ready(message.QueueDeadLetter), "it would be dropped as discarded")

	testkit.Exec(t, s.store, `alter table dead_letter drop constraint stays`)
	require.Equal(t, 1, s.run(Order{Do: DoUndo, Op: gone.Op}).Done)
	s.becomes(message.QueueDeadLetter, 1)
	require.Equal(t, map[string]string{"m1": "waiting by nobody"}, s.ledgered())
}
