package deadletter

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
)

// Removal says what a person does with letters that lie on the broker.
type Removal struct {
	// Decision is Discarded or Purged.
	Decision string
	// By is who does it, Note why, Op the operation it is part of.
	By, Note, Op string
}

// Keep writes letters that a person is about to remove from the broker into the
// ledger, as decided. A letter that the ledger has is left as it stands there. One
// whose text the database does not take is kept in a reduced form, as the handler
// keeps it. After an error none of those that are not in the ledger may be removed.
func Keep(ctx context.Context, st *store.Store, deliveries []*broker.Delivery, r Removal) error {
	letters := make([]*Letter, 0, len(deliveries))
	for _, d := range deliveries {
		l := Read(d)
		l.removal = &r
		letters = append(letters, l)
	}
	err := keep(ctx, st, letters)
	if err == nil || !contentFails(err, maxStores) {
		return err
	}
	for _, l := range letters { // one of them is not taken as it is
		err := keep(ctx, st, []*Letter{l})
		if err != nil && contentFails(err, maxStores) {
			l.reduced = true
			err = keep(ctx, st, []*Letter{l})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func keep(ctx context.Context, st *store.Store, letters []*Letter) error {
	err := st.Tx(ctx, "keep letters that are removed", func(ctx context.Context, tx *store.Tx) error {
		if err := look(ctx, tx, letters); err != nil {
			return err
		}
		p := tx.Pipeline()
		for _, l := range letters {
			p.Exec(store.RecordDeadLetter, l.row(verdict{decision: l.removal.Decision, detail: l.removal.Note})...)
		}
		return p.Send(ctx)
	})
	if err != nil {
		return fmt.Errorf("write %d letters into the ledger: %w", len(letters), err)
	}
	return nil
}

// Return has letters that Keep wrote down wait for a person again, since they were put
// back to the broker.
func Return(ctx context.Context, st *store.Store, deliveries []*broker.Delivery, by, note string) error {
	prints := make([]string, len(deliveries))
	for i, d := range deliveries {
		prints[i] = Read(d).fingerprint
	}
	if err := st.ReopenKeptLetters(ctx, by, note, prints); err != nil {
		return fmt.Errorf("have %d letters of the ledger wait again: %w", len(deliveries), err)
	}
	return nil
}
