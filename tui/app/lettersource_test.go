package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

func (f *fakeSource) Letter(ctx context.Context, id int64) (*monitor.LedgerDetail, error) {
	err := f.answer(ctx, screen.FeedLetter)
	for _, l := range f.dead.Ledger.Recent {
		if l.ID != id {
			continue
		}
		d := &monitor.LedgerDetail{
			Reading: monitor.Reading{At: f.overview.At}, LedgerEntry: l, Headers: []byte(`{"x-attune-reason": "poison"}`),
			Body:   monitor.LetterBody{Format: "json", JSON: []byte(dispatchBody(884301))},
			XDeath: []byte(`[{"queue": "worker.7.executions", "exchange": "attune.executions", "reason": "expired", "count": 1, "time": "2026-11-21T01:56:59Z", "routing-keys": ["execution.dispatch.worker.7"]}]`),
		}
		d.LedgerEntry.Size, d.MessageID = 412, "7f3a2c10-0d5e-4f0b-8a77-91d3f7cec91e"
		if l.Execution != nil {
			d.ExecutionNow = &monitor.LetterExecution{
				ID: *l.Execution, Status: l.StatusNow, ActionRef: l.ActionRef, Attempt: 1, WorkerID: ptr(7), Updated: *ago(22 * time.Minute), Parent: ptr(884050),
				ParentStatus: "running", Reason: "Worker queue TTL expired",
			}
		}
		return d, err
	}
	return nil, monitor.ErrNotFound
}

func (f *fakeSource) LedgerList(ctx context.Context, filter monitor.DeadLetterFilter, cursor int64) (*monitor.LedgerPage, error) {
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
		if cursor != 0 && l.ID >= cursor || filter.Open != l.Open() || filter.Action != "" && filter.Action != l.ActionRef {
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
	r := &monitor.Route{Reading: monitor.Reading{At: f.overview.At}, Exchange: exchange, Key: key, Exists: true, Kind: "topic"}
	if r.Queues = f.routes[key]; len(r.Queues) == 0 {
		r.Lost = true
	}
	return r, err
}

func (f *fakeSource) LetterRows(ctx context.Context, ids []int64) (*monitor.LetterRows, error) {
	rows := &monitor.LetterRows{Reading: monitor.Reading{At: f.overview.At}, Rows: map[int64]*redrive.Row{}}
	for _, id := range ids {
		row := &redrive.Row{
			ID: id, Status: "failed", ActionRef: "core.http_request", Expired: true, Worker: ptr(7), Created: *ago(time.Hour), Updated: *ago(22 * time.Minute),
			MaxTries: ptr(3), Reason: "Worker queue TTL expired",
		}
		if id%5 == 4 {
			row.Status, row.Expired, row.Reason = "completed", false, ""
		}
		rows.Rows[id] = row
	}
	return rows, f.answer(ctx, screen.FeedLetterRows)
}

func dispatchBody(execution int64) string {
	return fmt.Sprintf(`{"message_id": "7f3a2c10", "message_type": "ExecutionRequested", "version": "1.0", "timestamp": "2026-11-21T01:52:00.204Z", "headers": {},
		"payload": {"execution_id": %d, "worker_id": 7, "action_ref": "core.http_request", "config": {"url": "https://partner.example/feed", "token": "s3cret"},
		"scheduled_attempt_updated_at": "2026-11-21T01:52:00.201Z"}}`, execution)
}

// sampleWhole is a hand-over that died, as the broker has it.
func sampleWhole(execution int64) *redrive.Whole {
	return &redrive.Whole{
		MessageID: fmt.Sprintf("7f3a-%d", execution), Type: "ExecutionRequested", RoutingKey: "execution.dispatch.worker.7", Exchange: "attune.dlx", Redelivered: true,
		Body: []byte(dispatchBody(execution)),
		Headers: broker.Table{"x-death": []any{broker.Table{
			"queue": "worker.7.executions", "exchange": "attune.executions", "reason": "expired", "count": int64(1), "time": *ago(22 * time.Minute),
			"routing-keys": []any{"execution.dispatch.worker.7"},
		}}},
	}
}

// sampleSnapshot is what lay on the broker.
func sampleSnapshot() *redrive.Snapshot {
	s := &redrive.Snapshot{
		ID: "op", At: frozen.Add(-24 * time.Second), Cost: "marks redelivered",
		Queue: redrive.Queue{Name: monitor.DeadLetterQueue, Type: "classic", Version: "3.13.7", Ready: 10},
	}
	for i := range 8 {
		s.Letters = append(s.Letters, redrive.Read(sampleWhole(int64(884301+i)), i))
	}
	event := `{"message_type": "EventCreated", "timestamp": "2026-11-21T01:52:00Z", "payload": {"event_id": 5}}`
	for _, w := range []*redrive.Whole{
		{MessageID: "e1", Type: "EventCreated", Exchange: "attune.events", RoutingKey: "event.created", Body: []byte(event)},
		{Body: []byte("\x1b[31mgarbage")},
	} {
		s.Letters = append(s.Letters, redrive.Read(w, len(s.Letters)))
	}
	return s
}

// sampleSpool is what was removed and kept.
func sampleSpool() []*redrive.Spooled {
	s := &redrive.Spooled{Head: redrive.Head{Op: "01J9ZK", Do: redrive.DoDiscard, By: "ann@desk", Queue: monitor.DeadLetterQueue, At: *ago(time.Hour)}}
	for i := range 3 {
		l := redrive.Read(sampleWhole(int64(884401+i)), i)
		l.Op, l.State = s.Op, redrive.StateRemoved
		s.Letters = append(s.Letters, l)
	}
	return []*redrive.Spooled{s}
}

// letterActs answers what only looks at once.
type letterActs struct {
	fakeActs

	question bool
}

func (f *letterActs) Plan(ctx context.Context, order act.Order) (*act.Plan, error) {
	plan, err := f.fakeActs.Plan(ctx, order)
	if err == nil && order.Kind.Looks() {
		plan.Title, plan.AtOnce = string(order.Kind), !f.question
	}
	return plan, err
}

func (f *letterActs) Run(ctx context.Context, plan *act.Plan, reason string, progress *act.Progress) (*act.Receipt, error) {
	receipt, err := f.fakeActs.Run(ctx, plan, reason, progress)
	switch plan.Order.Kind {
	case act.SnapshotLetters:
		receipt.Result = sampleSnapshot()
	case act.ReadSpool:
		receipt.Result = sampleSpool()
	case act.DiscardLetter:
		receipt.Undo = &act.Order{Kind: act.UndoLetters, Target: act.Target{Name: "operation 01J9ZK", Ref: "01J9ZK"}}
	}
	return receipt, err
}

// evilSnapshot holds letters whose every text tries to break out.
func evilSnapshot(evil string) *redrive.Snapshot {
	s := sampleSnapshot()
	for i := range s.Letters {
		l := &s.Letters[i]
		w := *l.Whole
		w.MessageID, w.Type, w.RoutingKey, w.Exchange, w.AppID = evil, evil, evil, evil, evil
		w.Headers = broker.Table{evil: evil, "x-death": []any{broker.Table{"queue": evil, "exchange": evil, "reason": evil, "count": int64(-1)}}}
		if i%2 == 0 {
			w.Body = []byte(strings.Repeat(evil, 3))
		}
		s.Letters[i] = redrive.Read(&w, i)
	}
	return s
}
