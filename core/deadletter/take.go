package deadletter

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/store"
)

// TakeInfo is the evidence of a take: an operator moves messages from a queue into the ledger.
type TakeInfo struct {
	Queue string // their queue
	By    string
	Note  string
	Op    string // the id of the take
}

// LockName is the database lock that lets one operator at a time act on many dead letters of a
// queue.
func LockName(queue string) string { return "the queue " + queue }

// Taken counts the results for taken messages.
type Taken struct {
	Entries []Entry // new rows, with what selects them
	Known   int     // already in the ledger
	Probes  int     // probes of routes, which are dropped
}

// Add adds the counts of other.
func (t *Taken) Add(other Taken) {
	t.Entries, t.Known, t.Probes = append(t.Entries, other.Entries...), t.Known+other.Known, t.Probes+other.Probes
}

// Take writes messages into the ledger as dead letters that wait for an operator. One transaction
// writes the rows and calls also, or a few if they are many or large; after it the caller acknowledges
// the messages. A message that is
// already in the ledger changes nothing. If the database refuses the content of a message, the
// others are written in transactions of their own, and that message in a reduced form. After an
// error some may be written; taking them again finds their rows.
func Take(
	ctx context.Context, st *store.Store, deliveries []broker.Delivery, t TakeInfo,
	also func(context.Context, *store.Tx, Taken) error,
) (Taken, error) {
	deadLetters, probes := make([]*Message, 0, len(deliveries)), 0
	for i := range deliveries {
		for _, l := range readAll(&deliveries[i], t.Queue) {
			if l.kind == kindProbe {
				probes++
				continue
			}
			l.taking = &t
			deadLetters = append(deadLetters, l)
		}
	}
	parts := chunks(deadLetters)
	if len(parts) == 0 {
		parts = append(parts, nil) // probes only
	}
	var taken Taken
	for _, part := range parts {
		of, err := take(ctx, st, part, probes, also)
		if taken.Add(of); err != nil {
			return taken, err
		}
		probes = 0
	}
	return taken, nil
}

func take(
	ctx context.Context, st *store.Store, deadLetters []*Message, probes int,
	also func(context.Context, *store.Tx, Taken) error,
) (Taken, error) {
	var taken Taken
	bounded, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := st.Tx(bounded, "take dead letters", func(ctx context.Context, tx *store.Tx) error {
		taken = Taken{Probes: probes}
		written, _, err := record(ctx, tx, deadLetters, (*Message).awaitOperator)
		if err != nil {
			return err
		}
		for _, l := range written {
			e := Entry{
				ID: l.row, Reason: l.reason, Type: l.typed(), WorkerID: idOrNil(l.worker),
				Execution: idOrNil(l.Execution), Decision: Waiting,
			}
			if l.seen.execution != nil {
				e.ActionRef = l.seen.execution.ActionRef
			}
			taken.Entries = append(taken.Entries, e)
		}
		taken.Known = len(deadLetters) - len(written)
		if err := also(ctx, tx, taken); err != nil {
			return err
		}
		crashpoint.Reach("take:before-commit")
		return nil
	})
	switch {
	case err == nil:
		crashpoint.Reach("take:committed")
		return taken, nil
	case !contentFails(err, maxStores) || len(deadLetters) == 0:
	case len(deadLetters) > 1:
		half, err := take(ctx, st, deadLetters[:len(deadLetters)/2], probes, also)
		if err != nil {
			return half, err
		}
		rest, err := take(ctx, st, deadLetters[len(deadLetters)/2:], 0, also)
		half.Add(rest)
		return half, err
	case !deadLetters[0].reduced:
		deadLetters[0].reduced = true
		return take(ctx, st, deadLetters, probes, also)
	}
	return Taken{}, fmt.Errorf("write %d dead letters into the ledger: %w", len(deadLetters), err)
}

// awaitOperator leaves the decision to an operator.
func (l *Message) awaitOperator() verdict {
	v := waiting("%staken from %s by %s", l.because(), l.taking.Queue, l.taking.By)
	if l.trouble != "" {
		v.detail += "; " + l.trouble
	}
	return v
}
