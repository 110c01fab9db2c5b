package eventing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// Config configures the matching.
type Config struct {
	// Keys encrypt secret parameters. Without a key, rules with secret parameters fail.
	Keys secret.Keyring
	// MaxEnforcements bounds the enforcements of one transaction, unless a single event fires more
	// rules. Default 2,000.
	MaxEnforcements int
	// MaxDepth bounds a chain of rules, each fired by an event of the previous rule's action.
	// Default 32.
	MaxDepth int
	// Traced has the spans of events and failed enforcements sent after the commit.
	Traced bool
	// Source is the source_service of the messages. Default "attune-executor".
	Source string
}

// Relay publishes committed messages; *outbox.Relay is one.
type Relay = outbox.Publishing

// Matcher matches events with rules. It is safe for concurrent use.
type Matcher struct {
	cfg     Config
	store   *store.Store
	relay   Relay
	logger  *slog.Logger
	metrics *Metrics
}

// New makes a Matcher. Metrics may be nil.
func New(cfg Config, st *store.Store, relay Relay, logger *slog.Logger, metrics *Metrics) *Matcher {
	cfg.MaxEnforcements, cfg.MaxDepth = cmp.Or(cfg.MaxEnforcements, 2_000), cmp.Or(cfg.MaxDepth, 32)
	cfg.Source = cmp.Or(cfg.Source, "attune-executor")
	return &Matcher{cfg: cfg, store: st, relay: relay, logger: logger, metrics: cmp.Or(metrics, NewMetrics(nil))}
}

// Result is the result of a batch.
type Result struct {
	Events   int // newly matched events
	Repeated int // events that were matched before
	Created  int // new enforcements that request an execution
	Disabled int // new enforcements of rules that failed
	// Missing lists events without a row.
	Missing []int64
}

func (r *Result) add(other Result) {
	r.Events += other.Events
	r.Repeated += other.Repeated
	r.Created += other.Created
	r.Disabled += other.Disabled
	r.Missing = append(r.Missing, other.Missing...)
}

// errTooMany asks for the batch in two parts.
var errTooMany = errors.New("the events fire too many rules for one transaction")

// Match matches events with the rules, each once. After an error nothing is written for the failed
// part of the batch; the rest may be.
func (m *Matcher) Match(ctx context.Context, ids []int64) (Result, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return m.match(ctx, slices.Compact(ids))
}

func (m *Matcher) match(ctx context.Context, ids []int64) (Result, error) {
	if len(ids) == 0 {
		return Result{}, nil
	}
	var b *batch
	err := m.store.Once(ctx, "match events", func(ctx context.Context, tx *store.Tx) error {
		b = &batch{Matcher: m, tx: tx}
		return b.run(ctx, ids)
	})
	if errors.Is(err, errTooMany) {
		var whole Result
		for _, part := range [][]int64{ids[:len(ids)/2], ids[len(ids)/2:]} {
			result, err := m.match(ctx, part)
			whole.add(result)
			if err != nil {
				return whole, err
			}
		}
		return whole, nil
	}
	if err != nil {
		return Result{}, err
	}
	crashpoint.Reach("events:committed")
	b.report(ctx)
	return b.result, nil
}

// batch is one transaction.
type batch struct {
	*Matcher
	tx       *store.Tx
	events   []*event
	rules    []*candidate
	fires    []*fire
	marked   map[int64]bool // events that this transaction is the first to match
	disabled []int64        // new enforcements of rules that failed
	result   Result
}

// Most events are found withinDays; the others are searched in all partitions.
const (
	withinDays = 2 * 24 * 3600.0
	withinEver = 200 * 365 * 24 * 3600.0
)

func (b *batch) run(ctx context.Context, ids []int64) error {
	if err := b.read(ctx, ids); err != nil {
		return err
	}
	if len(b.events) == 0 {
		return nil
	}
	if err := b.matchAll(ctx); err != nil {
		return err
	}
	if len(b.fires) > b.cfg.MaxEnforcements && len(b.events) > 1 {
		return errTooMany
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	return b.write(ctx)
}

// read loads the events. Ids without a row are missing.
func (b *batch) read(ctx context.Context, ids []int64) error {
	missing := ids
	for _, within := range []float64{withinDays, withinEver} {
		rows, err := b.tx.ReadEvents(ctx, missing, within)
		if err != nil {
			return fmt.Errorf("read %d events: %w", len(missing), err)
		}
		found := make(map[int64]bool, len(rows))
		for _, row := range rows {
			if !found[row.ID] {
				b.events = append(b.events, newEvent(row))
			}
			found[row.ID] = true
		}
		missing = slices.DeleteFunc(slices.Clone(missing), func(id int64) bool { return found[id] })
		if len(missing) == 0 {
			break
		}
	}
	if len(missing) > 0 {
		b.result.Missing = missing
	}
	slices.SortFunc(b.events, func(x, y *event) int { return int(x.row.ID - y.row.ID) })
	return nil
}

// maxErrorText bounds the stored reason.
const maxErrorText = 1000

func reason(err error) string {
	text := []rune(err.Error())
	return string(text[:min(len(text), maxErrorText)])
}

// fresh lists the events that this transaction is the first to match.
func (b *batch) fresh() []*event {
	return slices.DeleteFunc(slices.Clone(b.events), func(e *event) bool { return !b.marked[e.row.ID] })
}
