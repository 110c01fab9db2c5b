package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
)

// The bounds of the lines about workers.
const (
	workerRows    = 8
	workerReasons = 8
)

// WorkerVerdict says whether one worker could take an execution.
type WorkerVerdict struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Answer is room, full, avoided, waited, absent or rejected.
	Answer   placement.Answer `json:"answer"`
	Reason   string           `json:"reason"`
	Assigned int              `json:"assigned"`
	Capacity int              `json:"capacity"`
	// Weight is the sum of the preferences that it meets.
	Weight int `json:"weight"`
}

// ReasonCount counts the workers with the same reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// PendingRetry is a retry that waits for its time.
type PendingRetry struct {
	// Number counts the retries including this one. Of is their maximum; 0 if it is unknown or has
	// no effect.
	Number int64 `json:"number"`
	Of     int64 `json:"of,omitempty"`
	// RequestedBy is the operator who retried.
	Reason      string    `json:"reason"`
	RequestedBy string    `json:"requested_by,omitempty"`
	Due         time.Time `json:"due"`
}

// sentence continues after the name of the execution.
func (r PendingRetry) sentence(at time.Time) string {
	text := phrase.Say("waits for its time: retry %d", r.Number)
	if r.Of >= r.Number {
		text.Add(" of %d", r.Of)
	}
	text.With(" after ", r.Reason).With(", asked for by ", r.RequestedBy)
	if !r.Due.After(at) {
		return text.String() + ", due now: the engine's next batch lets it into its queue."
	}
	return text.String() + ", due in " + phrase.Span(r.Due.Sub(at).Round(time.Second)) + "."
}

// readFleet reads the workers as placement sees them.
func (m *Reader) readFleet(ctx context.Context, tx *store.Tx) ([]placement.Worker, error) {
	rows, err := tx.ReadFleet(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers that could take it: %w", err)
	}
	list := make([]placement.Worker, len(rows))
	for i, r := range rows {
		w := placement.Row(r).Worker(m.Config().StaleAfter)
		switch {
		case w.Standing == placement.Silent && math.IsInf(r.HeartbeatAge, 1):
			w.Note = "and never had a heartbeat"
		case w.Standing == placement.Silent:
			w.Note = "for " + phrase.Span(monitor.Seconds(r.HeartbeatAge).Round(time.Second))
		case w.Standing == placement.Cordoned:
			note := new(phrase.Text).With("by ", r.CordonedBy)
			if r.CordonReason != "" {
				note.Add(" (%s)", r.CordonReason)
			}
			w.Note = strings.TrimSpace(note.String())
		}
		list[i] = w
	}
	return list, nil
}

// actionNeed reads what an action requires of workers, and how often it allows a retry. A deleted
// one requires nothing.
func actionNeed(ctx context.Context, tx *store.Tx, id int64) (need placement.Need, retries int64, err error) {
	rows, err := tx.ReadActionRules(ctx, []int64{id}, []string{})
	if err != nil {
		return need, 0, fmt.Errorf("read what action %d asks of its workers: %w", id, err)
	}
	if len(rows) == 0 {
		return need, 0, nil
	}
	return scheduler.NeedOf(rows[0]), int64(rows[0].MaxRetries), nil
}

// forWorker reports whether the execution waits for a worker, or failed without one.
func (w *Why) forWorker() bool {
	if w.Waiting != nil && w.Queue != nil {
		return w.Queue.Blocked != "" && w.Queue.BlockedScope == nil && !w.Queue.Paused
	}
	return w.Status == string(lifecycle.StatusFailed) && w.WorkerID == nil &&
		(strings.HasPrefix(w.refusal, "no workers available") || strings.HasPrefix(w.refusal, "no compatible worker"))
}

// whyWorkers reads when a retry is due, or why no worker takes the execution.
func (m *Reader) whyWorkers(ctx context.Context, tx *store.Tx, s monitor.Shape, action *int64, w *Why) error {
	fresh := w.Status == string(lifecycle.StatusRequested) && w.Waiting == nil && w.RetryCount > 0
	if !fresh && !w.forWorker() {
		return nil
	}
	if !s.Ours {
		return nil
	}
	rows, err := tx.ViewPlacement(ctx, []int64{w.ID})
	if err != nil {
		return fmt.Errorf("read what execution %d asks of its worker: %w", w.ID, err)
	}
	if len(rows) == 0 {
		return nil
	}
	var need placement.Need
	var retries int64
	if action != nil {
		if need, retries, err = actionNeed(ctx, tx, *action); err != nil {
			return err
		}
	}
	row := rows[0]
	if fresh {
		return m.whyRetry(ctx, tx, row, retries, w)
	}
	if need, err = need.Override(placement.ReadOwn(row.Placement)); err != nil {
		return nil //nolint:nilerr // it fails for that reason with the next batch, which then says so
	}
	need.Avoid = row.Avoid
	workers, err := m.readFleet(ctx, tx)
	if err != nil {
		return err
	}
	list := placement.NewFleet(workers, 0).Explain(need)
	w.missed = lastSeen(list)
	w.assess(list)
	return nil
}

// whyRetry describes a retry that waits for its time.
func (m *Reader) whyRetry(ctx context.Context, tx *store.Tx, row store.ViewPlacementRow, retries int64, w *Why) error {
	if !row.Waiting || row.Due == nil {
		return nil
	}
	w.Retry = &PendingRetry{Number: w.RetryCount, Reason: row.Reason, RequestedBy: row.RequestedBy, Due: *row.Due}
	adopted, err := tx.SchemaAdopted(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the origin of the schema: %w", err)
	case w.MaxRetries != nil:
		w.Retry.Of = *w.MaxRetries
	case m.Config().ActionRetries.Honours(adopted):
		w.Retry.Of = retries
	}
	return nil
}

// answerOrder is the order of the workers.
var answerOrder = []placement.Answer{
	placement.AnswerRoom, placement.AnswerFull, placement.AnswerAvoided, placement.AnswerWaited, placement.AnswerAbsent,
	placement.AnswerRejected,
}

// lastSeen is the worker that fits and that was there last, if none is there now.
func lastSeen(list []placement.Explained) (last *placement.Worker) {
	for _, e := range list {
		switch {
		case e.Fits && e.Answer != placement.AnswerAbsent:
			return nil
		case e.Fits && e.Worker.Seen.Unix() > 0 && (last == nil || e.Worker.Seen.After(last.Seen)):
			last = e.Worker
		}
	}
	return last
}

func (w *Why) assess(list []placement.Explained) {
	counts := map[string]int{}
	for _, e := range list {
		counts[e.Kind]++
	}
	for reason, count := range counts {
		w.WorkerReasons = append(w.WorkerReasons, ReasonCount{reason, count})
	}
	slices.SortFunc(w.WorkerReasons, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason))
	})
	if len(w.WorkerReasons) > workerReasons {
		rest := 0
		for _, r := range w.WorkerReasons[workerReasons-1:] {
			rest += r.Count
		}
		w.WorkerReasons = append(w.WorkerReasons[:workerReasons-1], ReasonCount{"other reasons", rest})
	}
	rank := func(e placement.Explained) int {
		at := slices.Index(answerOrder, e.Answer)
		if !e.Fits { // unsuitable ones come last
			at += len(answerOrder)
		}
		return at
	}
	slices.SortStableFunc(list, func(a, b placement.Explained) int { return cmp.Compare(rank(a), rank(b)) })
	w.Workers = []WorkerVerdict{}
	for _, e := range list[:min(len(list), workerRows)] {
		w.Workers = append(w.Workers, WorkerVerdict{
			ID: e.Worker.ID, Name: e.Worker.Name, Answer: e.Answer, Reason: e.Reason,
			Assigned: e.Worker.Assigned, Capacity: e.Worker.Capacity, Weight: e.Weight,
		})
	}
}

// workerLines say of each worker why it does not take the execution.
func (w *Why) workerLines() []string {
	if w.Workers == nil {
		return nil
	}
	if len(w.Workers) == 0 {
		return []string{"No worker is registered: start one with `attune-executor worker`."}
	}
	lines := []string{"The workers, as they are now:"}
	for _, one := range w.Workers {
		lines = append(lines, "  "+cmp.Or(one.Name, fmt.Sprintf("worker %d", one.ID))+": "+one.Reason)
	}
	total := 0
	texts := make([]string, len(w.WorkerReasons))
	for i, r := range w.WorkerReasons {
		total += r.Count
		texts[i] = fmt.Sprintf("%s (%d)", r.Reason, r.Count)
	}
	if total > len(w.Workers) {
		lines = append(lines,
			fmt.Sprintf("  and %d more; of all %d: %s", total-len(w.Workers), total, strings.Join(texts, ", ")))
	}
	return lines
}
