package app

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// longLedger is a source with so many dead letters, of which each third waits.
func longLedger(n int) *fakeSource {
	source := sample()
	source.ledger = nil
	for id := int64(n); id > 0; id-- {
		l := monitor.LedgerEntry{
			ID: id, At: *ago(22 * 60e9), What: "dispatch", Type: "ExecutionRequested", Reason: "expired",
			Queue: "worker.7.executions", ActionRef: "core.echo",
			WorkerID: ptr(7), WorkerName: "worker-node-02", Decision: "failed",
		}
		if id%3 == 0 {
			l.Decision, l.ActionRef = monitor.DecisionOpen, "mail.send"
		}
		source.ledger = append(source.ledger, l)
	}
	source.recent()
	return source
}

// recent lists the rows of every poll: waiting ones, then the newest others.
func (f *fakeSource) recent() {
	var list []monitor.LedgerEntry
	for _, open := range []bool{true, false} {
		for _, l := range f.ledger {
			if l.Open() == open && len(list) < monitor.LedgerRecent {
				list = append(list, l)
			}
		}
	}
	dead, ledger := *f.dead, *f.dead.Ledger
	ledger.Recent, dead.Ledger = list, &ledger
	f.dead = &dead
}

// keys lists the dead letters of the list in its order.
func (b *bundle) deadLetterKeys() []string {
	keys := make([]string, b.deadLetters.Len())
	for i := range keys {
		keys[i] = b.deadLetters.Key(i)
	}
	return keys
}

// wanted are the keys of a ledger in the order of the list.
func (f *fakeSource) wanted() []string {
	var keys []string
	for _, open := range []bool{true, false} {
		for _, l := range f.ledger {
			if l.Open() == open {
				keys = append(keys, strconv.FormatInt(l.ID, 10))
			}
		}
	}
	return keys
}

// TestTheLedgerIsPaged: G loads one page after the other, first the waiting dead letters. Each
// appears exactly once.
func TestTheLedgerIsPaged(t *testing.T) {
	b := started(t, longLedger(1_500), 140, 40)
	b.press("5")
	require.Equal(t, monitor.LedgerRecent, b.deadLetters.Len())
	require.Contains(t, b.View(), "more below")
	require.Empty(t, b.source.asked, "nothing is asked before it is wanted")
	for range 20 {
		b.press("G")
	}
	require.Equal(t, b.source.wanted(), b.deadLetterKeys())
	require.NotContains(t, b.View(), "more below")
	n := len(b.source.asked)
	b.press("G", "k", "j")
	require.Len(t, b.source.asked, n, "all is there: moving asks for nothing")
}

// Rows that polls no longer return stay in the list.
func TestTheLedgerHasNoGapsWhenDeadLettersArrive(t *testing.T) {
	b := started(t, longLedger(900), 140, 40)
	b.press("5", "G", "G", "G", "G", "G", "G", "G")
	for id := int64(901); id <= 1_150; id++ {
		l := b.source.ledger[0]
		l.ID, l.Decision, l.ActionRef = id, "failed", "core.echo"
		if id%2 == 0 {
			l.Decision = monitor.DecisionOpen
		}
		b.source.ledger = slices.Insert(b.source.ledger, 0, l)
		if id%50 == 0 {
			b.source.recent()
			b.run(b.refresh())
		}
	}
	b.now = b.now.Add(screen.SettleTime)
	b.tick()
	b.run(b.refresh())
	waiting := 300 + 125
	require.Equal(t, b.source.wanted()[:waiting], b.deadLetterKeys()[:waiting], "every one that waits")
	b.press("gg")
	require.Equal(t, monitor.LedgerRecent, b.deadLetters.Len(), "at the top it is read again")
	b.press("G", "G", "G", "G", "G", "G", "G", "G")
	require.Equal(t, b.source.wanted(), b.deadLetterKeys())
	b.press(" ", "gg")
	require.Equal(t, len(b.source.ledger), b.deadLetters.Len(), "marked rows stay")
}

// TestAFilterAsksTheLedger: the database applies the terms it has, the list the others.
func TestAFilterAsksTheLedger(t *testing.T) {
	b := started(t, longLedger(1_500), 140, 40)
	b.press("5", "/")
	b.press("action:core.echo !reason:poison age<1h", "enter")
	b.press("G", "G", "G", "G", "G", "G", "G", "G", "G")
	require.Equal(t, 1_000, b.deadLetters.Len())
	first := b.source.asked[0]
	require.Equal(t, "core.echo", first.Action)
	require.Equal(t, "1h0m0s", first.MaxAge.String())
	require.Empty(t, first.Reason, "the database has no negated terms")
	b.press("/")
	b.line().Set("decision:waiting", len("decision:waiting"))
	b.press("enter", "G", "G", "G", "G")
	require.Equal(t, 500, b.deadLetters.Len())
	for _, one := range b.source.asked[len(b.source.asked)-2:] {
		require.True(t, one.Open, "decided ones are not read")
	}
}

// TestDecidedDeadLettersLeaveTheWaitingOnes: further down in the ledger too.
func TestDecidedDeadLettersLeaveTheWaitingOnes(t *testing.T) {
	b := started(t, longLedger(1_500), 140, 40)
	b.press("5", "z", "G", "G", "G", "G")
	require.Equal(t, 500, b.deadLetters.Len())
	require.Contains(t, b.View(), "problems")
	last := b.deadLetters.Len() - 1
	gone := b.deadLetters.Key(last)
	at := slices.IndexFunc(b.source.ledger,
		func(l monitor.LedgerEntry) bool { return strconv.FormatInt(l.ID, 10) == gone })
	b.source.ledger[at].Decision = "discarded"
	b.run(b.refresh())
	require.Equal(t, last, b.deadLetters.Len())
	require.NotContains(t, b.deadLetterKeys(), gone)
}
