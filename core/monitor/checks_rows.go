package monitor

import (
	"context"
	"fmt"
	"strconv"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// The checks of rows.
const (
	checkSlots     = "admission.slots"
	checkLeaked    = "admission.leaked_slot"
	checkForgotten = "execution.forgotten"
	checkStaleWork = "worker.stale_work"
	checkStats     = "queue_stats"
)

var rowChecks = []string{checkSlots, checkLeaked, checkForgotten, checkStaleWork, checkStats}

// The bounds of the checks of rows.
const (
	checkLeakedBound = 1_000
	checkOldBound    = 5_000
)

// checkRows looks whether rows agree. The numbers are those of one transaction.
func (m *Monitor) checkRows(ctx context.Context, tx *store.Tx, s Shape) ([]Check, error) {
	if !s.Ours {
		return publishedRows(ctx, tx)
	}
	slots, leaked, err := checkSlotRows(ctx, tx)
	if err != nil {
		return nil, err
	}
	list := []Check{slots, leaked}
	forgotten, err := tx.CheckForgotten(ctx, checkOldBound)
	if err != nil {
		return nil, fmt.Errorf("look for forgotten requests: %w", err)
	}
	var ids []string
	for _, row := range forgotten {
		ids = append(ids, strconv.FormatInt(row.ID, 10))
	}
	list = append(list, verdict(checkForgotten, ids, Check{
		Text: countOf(ids, "requested execution") + " wait in no queue for more than 10 minutes",
		Fix:  "a replica takes them up again within minutes; look at its loop recovery, or requeue with A retry", View: "executions", Filter: "status:requested",
	}, "no request waits outside a queue"))
	stale, err := tx.CheckStaleLoad(ctx, m.cfg.StaleAfter.Seconds())
	if err != nil {
		return nil, fmt.Errorf("look for work of stale workers: %w", err)
	}
	var names []string
	var work int64
	for _, row := range stale {
		names, work = append(names, row.Name), work+row.Assigned
	}
	list = append(list, verdict(checkStaleWork, names, Check{
		Text: phrase.Plural(work, "execution is", "executions are") + " at " + countOf(names, "worker") + ", silent for more than " + phrase.Span(m.cfg.StaleAfter),
		Fix:  "the engine ends or repeats them when it takes the worker for lost; a worker that comes back reports its own", View: "workers", Filter: first(names),
	}, "no execution is at a worker that is silent"))
	stats, err := tx.CheckQueueStats(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare queue_stats: %w", err)
	}
	return append(list, verdict(checkStats, stats, Check{
		Text: "queue_stats of " + countOf(stats, "action") + " differ from its queues",
		Fix:  "A repair on the queue counts again", View: "queues", Filter: first(stats),
	}, "queue_stats agree with the queues")), nil
}

// checkSlotRows compares the counters of slots with the rows of the holders.
func checkSlotRows(ctx context.Context, tx *store.Tx) (slots, leaked Check, err error) {
	row, err := tx.CheckSlots(ctx)
	if err != nil {
		return slots, leaked, fmt.Errorf("count slots: %w", err)
	}
	ended, err := tx.CheckLeaked(ctx, checkLeakedBound)
	if err != nil {
		return slots, leaked, fmt.Errorf("look for leaked slots: %w", err)
	}
	var ids []string
	action := ""
	for _, h := range ended {
		ids, action = append(ids, strconv.FormatInt(h.ID, 10)), h.ActionRef
	}
	leaked = verdict(checkLeaked, ids, Check{
		Text: countOf(ids, "ended execution") + stillHold(ids) + ", one of " + action + ": its queue cannot use it",
		Fix:  "a replica gives it back within a minute; A repair on the queue does it now", View: "queues", Filter: action,
	}, "no execution that has ended holds a slot")
	if row.Counted == row.Held {
		slots = Check{Name: checkSlots, Status: CheckOK, Text: phrase.Plural(row.Counted, "slot", "slots") + " counted, as many held"}
		return slots, leaked, nil
	}
	slots = verdict(checkSlots, []string{"slots"}, Check{
		Text: "the queues count " + phrase.Plural(row.Counted, "slot", "slots") + ", " + phrase.Plural(row.Held, "execution holds", "executions hold") + " one",
		Fix:  "`attune-executor doctor` names the queues; A repair counts one again", View: "queues",
	}, "")
	return slots, leaked, nil
}

func publishedRows(ctx context.Context, tx *store.Tx) ([]Check, error) {
	rows, err := tx.CheckPublishedLeaks(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for leaked slots: %w", err)
	}
	var ids []string
	for _, row := range rows {
		ids = append(ids, strconv.FormatInt(row.ID, 10))
	}
	leaked := verdict(checkLeaked, ids, Check{
		Text: countOf(ids, "ended execution") + stillHold(ids) + ": the queue cannot use it",
		Fix:  "`attune-executor migrate up` and a replica, which sweep them", View: "queues",
	}, "no execution that has ended holds a slot")
	list := []Check{leaked}
	for _, name := range rowChecks {
		if name != checkLeaked {
			list = append(list, Check{Name: name, Status: CheckUnknown, Text: "the schema has none of the engine's own columns"})
		}
	}
	return list, nil
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func stillHold(ids []string) string {
	if len(ids) == 1 {
		return " still holds a slot"
	}
	return " still hold a slot each"
}
