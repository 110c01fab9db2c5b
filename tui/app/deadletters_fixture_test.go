package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

func (f *fakeSource) DeadLetter(ctx context.Context, id int64) (*monitor.LedgerDetail, error) {
	err := f.answer(ctx, screen.FeedLedgerDetail)
	for _, l := range f.dead.Ledger.Recent {
		if l.ID != id {
			continue
		}
		d := &monitor.LedgerDetail{
			Reading: monitor.Reading{At: f.overview.At}, LedgerEntry: l,
			Body: monitor.DeadLetterBody{Format: "json", JSON: []byte(dispatchBody(884301))},
			DeadLetterDocuments: monitor.DeadLetterDocuments{
				Headers: []byte(`{"x-attune-reason": "poison"}`),
				XDeath:  []byte(`[{"queue": "worker.7.executions", "exchange": "attune.executions", "reason": "expired", "count": 1, "time": "2026-11-21T01:56:59Z", "routing-keys": ["execution.dispatch.worker.7"]}]`),
			},
		}
		d.LedgerEntry.Size, d.MessageID = 412, "7f3a2c10-0d5e-4f0b-8a77-91d3f7cec91e"
		if l.Execution != nil {
			d.ExecutionNow = &monitor.DeadLetterExecution{
				ID: *l.Execution, Status: l.StatusNow, ActionRef: l.ActionRef, Attempt: 1, WorkerID: ptr(7),
				Updated: *ago(22 * time.Minute), Parent: ptr(884050),
				ParentStatus: "running", Reason: "Worker queue TTL expired",
			}
		}
		return d, err
	}
	return nil, monitor.ErrNotFound
}

func (f *fakeSource) ExportDeadLetters(ctx context.Context, filter monitor.DeadLetterFilter, _ int,
	each func(*monitor.ExportedDeadLetter) error,
) (int, error) {
	page, err := f.LedgerList(ctx, filter, 0)
	if err != nil {
		return 0, err
	}
	for _, l := range page.List {
		if err := each(&monitor.ExportedDeadLetter{
			LedgerEntry: l,
			Body:        new(`{"attempt": 1, "password": "hunter2"}`),
		}); err != nil {
			return 0, err
		}
	}
	return len(page.List), nil
}

func (f *fakeSource) LedgerList(ctx context.Context, filter monitor.DeadLetterFilter,
	cursor int64,
) (*monitor.LedgerPage, error) {
	err := f.answer(ctx, screen.FeedLedger)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, filter)
	page := &monitor.LedgerPage{Reading: monitor.Reading{At: f.overview.At}, Filter: filter, From: cursor}
	for _, l := range f.ledger {
		if len(filter.IDs) > 0 {
			if slices.Contains(filter.IDs, l.ID) {
				page.List = append(page.List, l)
			}
			continue
		}
		if cursor != 0 && l.ID >= cursor || filter.Open != l.Open() || filter.Action != "" &&
			filter.Action != l.ActionRef {
			continue
		}
		if len(page.List) == cmp.Or(filter.Limit, monitor.DefaultPage) {
			page.Next = page.List[len(page.List)-1].ID
			break
		}
		page.List = append(page.List, l)
	}
	return page, err
}

func (f *fakeSource) Route(ctx context.Context, exchange, key string) (*monitor.Route, error) {
	err := f.answer(ctx, screen.FeedRoute)
	r := &monitor.Route{
		Reading: monitor.Reading{At: f.overview.At}, Exchange: exchange, Key: key, Exists: true,
		Kind: "topic",
	}
	if r.Queues = f.routes[key]; len(r.Queues) == 0 {
		r.Lost = true
	}
	return r, err
}

func dispatchBody(execution int64) string {
	return fmt.Sprintf(`{"message_id": "7f3a2c10", "message_type": "ExecutionRequested", "version": "1.0", "timestamp": "2026-11-21T01:52:00.204Z", "headers": {},
		"payload": {"execution_id": %d, "worker_id": 7, "action_ref": "core.http_request", "config": {"url": "https://partner.example/feed", "token": "s3cret"},
		"scheduled_attempt_updated_at": "2026-11-21T01:52:00.201Z"}}`, execution)
}

// deadLetterActs takes and discards.
type deadLetterActs struct{ fakeActs }

func (f *deadLetterActs) Run(ctx context.Context, plan *act.Plan, reason string,
	progress *act.Progress,
) (*act.Receipt, error) {
	receipt, err := f.fakeActs.Run(ctx, plan, reason, progress)
	if plan.Request.Kind == act.DiscardDeadLetter || plan.Request.Kind == act.TakeDeadLetters {
		receipt.Undo = &act.Request{
			Kind: act.UndoDeadLetters, Target: act.Target{Name: "2 dead letters"},
			Targets: []act.Target{{ID: 5}, {ID: 4}},
		}
	}
	return receipt, err
}
