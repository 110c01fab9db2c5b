package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

const (
	reportEvery = time.Second
	reportPage  = 200
	// claimLease is how long the claim of a killed replica holds: longer than a tick.
	claimLease  = 45 * time.Second
	reportLimit = 30 * time.Second
	// keepPending is how long spans wait for a collector that is away.
	keepPending = 15 * time.Minute
	prunePage   = 5000
	// eventsWithin bounds the partitions that are searched for an event.
	eventsWithin = 72 * time.Hour
)

// Reporter sends the spans of rows that have ended. Several replicas may run one; each span is sent by
// one of them, and again by another if that one is killed.
type Reporter struct {
	*supervise.Loop

	client  *client
	roots   *Roots
	store   *store.Store
	logger  *slog.Logger
	metrics *Metrics
}

// NewReporter makes the loop.
func NewReporter(cfg Config, roots *Roots, st *store.Store, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) (*Reporter, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	r := &Reporter{client: c, roots: roots, store: st, logger: logger, metrics: metrics}
	r.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "traces", Interval: reportEvery, Timeout: reportLimit, Jitter: 0.2, Tick: r.tick, Logger: logger,
		Metrics: loops,
	})
	return r, nil
}

// tick sends what waits, page by page.
func (r *Reporter) tick(ctx context.Context) error {
	expired, err := r.store.PruneTracePending(ctx, keepPending.Seconds(), prunePage)
	if err != nil {
		return fmt.Errorf("delete rows of trace_pending that no collector took: %w", err)
	}
	if expired > 0 {
		r.metrics.add(outcomeDropped, int(expired))
		r.logger.WarnContext(ctx, "Traces are lost, no collector took them in time", "rows", expired)
	}
	for {
		full, err := r.page(ctx)
		if err != nil || !full {
			return err
		}
	}
}

func (r *Reporter) page(ctx context.Context) (full bool, err error) {
	rows, err := r.store.ClaimTracePending(ctx, claimLease.Seconds(), reportPage)
	if err != nil {
		return false, fmt.Errorf("claim rows of trace_pending: %w", err)
	}
	if len(rows) == 0 {
		return false, nil
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	spans, err := r.read(ctx, rows)
	if err == nil && len(spans) > 0 {
		err = r.client.send(ctx, spans)
	}
	switch {
	case errors.Is(err, errRefused):
		r.metrics.add(outcomeDropped, len(spans))
		r.logger.WarnContext(ctx, "Spans are lost", "spans", len(spans), "error", err)
	case err != nil:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
		defer cancel()
		return false, errors.Join(err, r.store.ReleaseTracePending(ctx, ids))
	default:
		r.metrics.add(outcomeSent, len(spans))
	}
	if err := r.store.DeleteTracePending(ctx, ids); err != nil {
		return false, fmt.Errorf("delete %d rows of trace_pending: %w", len(ids), err)
	}
	return len(rows) == reportPage, nil
}

// read reads the spans of rows. A row that was deleted has none.
func (r *Reporter) read(ctx context.Context, rows []store.ClaimTracePendingRow) ([]Span, error) {
	subjects := map[Kind][]int64{}
	done := make(map[int64]time.Time, len(rows))
	for _, row := range rows {
		kind := Kind(row.Kind)
		subjects[kind] = append(subjects[kind], row.Subject)
		if kind == Execution {
			done[row.Subject] = row.At
		}
	}
	events, err := r.store.ReadTraceEvents(ctx, subjects[Event], eventsWithin.Seconds())
	if err != nil {
		return nil, fmt.Errorf("read %d events for their spans: %w", len(subjects[Event]), err)
	}
	executions := subjects[Execution]
	for _, e := range events {
		if e.Execution != 0 {
			executions = append(executions, e.Execution) // only for the link
		}
	}
	ofExecution, ofEnforcement, err := r.roots.In(ctx, r.store.Queries, executions, subjects[Enforcement])
	if err != nil {
		return nil, err
	}
	seed, err := r.roots.seed.read(ctx, r.store.Queries)
	if err != nil {
		return nil, err
	}
	var spans []Span
	for _, e := range events {
		root := seed.Root(Origin{Kind: Event, Row: e.ID, Client: e.Traceparent}, r.roots.ratio)
		if root.Sampled {
			spans = append(spans, eventSpan(root, e, ofExecution[e.Execution]))
		}
	}
	enforcements, err := r.store.ReadTraceEnforcements(ctx, sampled(subjects[Enforcement], ofEnforcement))
	if err != nil {
		return nil, fmt.Errorf("read %d enforcements for their spans: %w", len(subjects[Enforcement]), err)
	}
	for _, e := range enforcements {
		spans = append(spans, enforcementSpan(ofEnforcement[e.ID], e))
	}
	ended, err := r.store.ReadTraceExecutions(ctx, sampled(subjects[Execution], ofExecution))
	if err != nil {
		return nil, fmt.Errorf("read %d executions for their spans: %w", len(subjects[Execution]), err)
	}
	for _, e := range ended {
		spans = append(spans, executionSpans(ofExecution[e.ID], e, done[e.ID])...)
	}
	return spans, nil
}

// sampled returns the ids whose trace is sampled.
func sampled(ids []int64, roots map[int64]Context) []int64 {
	kept := make([]int64, 0, len(ids))
	for _, id := range ids {
		if roots[id].Sampled {
			kept = append(kept, id)
		}
	}
	return kept
}
