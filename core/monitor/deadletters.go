package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/store"
)

const (
	// LedgerRecent is how many dead letters at most are listed beside the counts.
	LedgerRecent = 200
	// ledgerBound is where counting the letters of a day stops.
	ledgerBound = 2_000
	// RatePace is the time over which the pace of dead letters is measured.
	RatePace = 5 * time.Minute
)

// DeadLetters reads the depth of the dead-letter queue from the broker and what
// became of handled ones from the ledger. The two sources are read side by side
// and neither hides the other's answer; the error is set only when both fail.
func (m *Monitor) DeadLetters(ctx context.Context) (*DeadLetters, error) {
	d := &DeadLetters{}
	var b *Broker
	brokerErr, databaseErr := m.both(ctx, "dead letters", &d.Reading, func(reader BrokerReader) (err error) {
		b, err = reader.ReadBroker(ctx)
		return err
	}, d.ledger)
	if q, ok := b.Queue(DeadLetterQueue); ok && brokerErr == nil {
		d.Queue = &q
	} else {
		d.QueueMissing = brokerErr == nil
	}
	if databaseErr != nil && brokerErr != nil {
		return d, errors.Join(databaseErr, brokerErr)
	}
	return d, nil
}

func (d *DeadLetters) ledger(ctx context.Context, tx *store.Tx, s Shape) (err error) {
	if !s.ledger {
		return nil
	}
	switch holder, err := tx.SessionLockHolder(ctx, deadletter.LockName(DeadLetterQueue)); {
	case err == nil:
		d.Running = cmp.Or(holder.Holder, "another session")
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("find the operator who acts on dead letters: %w", err)
	}
	numbers, err := readLedgerNumbers(ctx, tx)
	if err != nil {
		return err
	}
	l := &Ledger{
		Open: numbers.open, Oldest: numbers.oldest, PerMinute: numbers.perMinute,
	}
	groups, err := tx.MonitorLedgerGroups(ctx, ledgerBound)
	if err != nil {
		return fmt.Errorf("group the dead-letter ledger: %w", err)
	}
	for _, g := range groups {
		l.LastDay = Count{Value: g.Total, AtLeast: g.Total >= ledgerBound}
		l.ByReason = append(l.ByReason, LedgerGroup{Reason: g.Reason, Decision: decision(g.Decision), Count: g.N, Newest: g.Newest})
	}
	if l.Recent, err = recentLetters(ctx, tx); err != nil {
		return err
	}
	if err := judgeLeases(ctx, tx, s, l.Recent); err != nil {
		return err
	}
	d.Ledger = l
	return nil
}

// recentLetters lists who waits for a person, then the newest of the others.
func recentLetters(ctx context.Context, tx *store.Tx) ([]LedgerEntry, error) {
	search := letterSearch{ViewLetterIDsParams: store.ViewLetterIDsParams{
		OnlyOpen: true, Before: math.MaxInt64, Scan: LedgerRecent, Page: LedgerRecent, Decisions: []string{},
	}}
	open, err := search.ids(ctx, tx)
	if err != nil {
		return nil, err
	}
	list, err := readLetters(ctx, tx, open.Ids)
	if err != nil || len(list) == LedgerRecent {
		return list, err
	}
	search.OnlyOpen, search.OnlyDecided = false, true
	search.Scan, search.Page = 2*LedgerRecent, int64(LedgerRecent-len(list))
	decided, err := search.ids(ctx, tx)
	if err != nil {
		return nil, err
	}
	rest, err := readLetters(ctx, tx, decided.Ids)
	return append(list, rest...), err
}

// ledgerNumbers are depth, age and pace of the ledger.
type ledgerNumbers struct {
	open      Count
	oldest    *time.Time
	perMinute float64
	latency   *time.Duration
}

func readLedgerNumbers(ctx context.Context, tx *store.Tx) (ledgerNumbers, error) {
	row, err := tx.ViewLetterNumbers(ctx, ledgerBound, RatePace.Seconds())
	if err != nil {
		return ledgerNumbers{}, fmt.Errorf("measure the dead-letter ledger: %w", err)
	}
	n := ledgerNumbers{
		open:      Count{Value: row.Waiting, AtLeast: row.Waiting >= ledgerBound},
		perMinute: float64(row.Lately) / RatePace.Minutes(),
	}
	if row.Waiting > 0 {
		n.oldest = &row.Oldest
	}
	if row.LatencySeconds >= 0 {
		n.latency = new(inSeconds(row.LatencySeconds))
	}
	return n, nil
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// decision names a decision for people; none means that a person has to decide.
func decision(taken string) string {
	if taken == "" {
		return DecisionOpen
	}
	return taken
}
