package monitor

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/store"
)

// ledgerRecent is how many handled dead letters are listed.
const ledgerRecent = 200

// DeadLetters reads the depth of the dead-letter queue from the broker and what
// became of handled ones from the ledger. The two sources are read side by side
// and neither hides the other's answer; the error is set only when both fail.
func (m *Monitor) DeadLetters(ctx context.Context) (*DeadLetters, error) {
	d := &DeadLetters{}
	asked := make(chan *Broker, 1)
	brokerErr := make(chan error, 1)
	go func() {
		b, err := m.Broker(ctx)
		asked <- b
		brokerErr <- err
	}()
	databaseErr := m.database(ctx, "dead letters", &d.Reading, d.ledger)
	b, err := <-asked, <-brokerErr
	d.Sources = append(d.Sources, b.Sources...)
	if q, ok := b.Queue(DeadLetterQueue); ok {
		d.Queue = &q
	} else if err == nil {
		d.QueueMissing = true
	}
	if databaseErr != nil && err != nil {
		return d, errors.Join(databaseErr, err)
	}
	return d, nil
}

func (d *DeadLetters) ledger(ctx context.Context, tx *store.Tx, s shape) error {
	if !s.ledger {
		return nil
	}
	counts, err := tx.MonitorLedgerCounts(ctx, countBound)
	if err != nil {
		return fmt.Errorf("count the dead-letter ledger: %w", err)
	}
	l := &Ledger{
		Open:    Count{Value: counts.Open, AtLeast: counts.Open >= countBound},
		LastDay: Count{Value: counts.LastDay, AtLeast: counts.LastDay >= countBound},
	}
	groups, err := tx.MonitorLedgerGroups(ctx, countBound)
	if err != nil {
		return fmt.Errorf("group the dead-letter ledger: %w", err)
	}
	for _, g := range groups {
		l.ByReason = append(l.ByReason, LedgerGroup{Reason: g.Reason, Decision: decision(g.Decision), Count: g.N, Newest: g.Newest})
	}
	recent, err := tx.MonitorLedgerRecent(ctx, ledgerRecent)
	if err != nil {
		return fmt.Errorf("list the dead-letter ledger: %w", err)
	}
	for _, r := range recent {
		l.Recent = append(l.Recent, LedgerEntry{
			ID: r.ID, At: r.Created, Type: r.MessageType, Reason: r.Reason,
			Decision: decision(r.Decision), Queue: r.Queue, Execution: r.Execution,
		})
	}
	d.Ledger = l
	return nil
}

// decision names a decision for people; none means that a person has to decide.
func decision(taken string) string {
	if taken == "" {
		return DecisionOpen
	}
	return taken
}
