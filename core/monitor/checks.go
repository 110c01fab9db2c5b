package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// CheckStatus is what came of a check.
type CheckStatus string

// What can come of a check, from good to bad. A check that could not be made says
// nothing about what it is called after.
const (
	CheckOK      CheckStatus = "ok"
	CheckUnknown CheckStatus = "unknown"
	CheckWarning CheckStatus = "warning"
	CheckProblem CheckStatus = "problem"
)

// Check is one thing that was looked at, read only.
type Check struct {
	// Name is what was looked at, such as topology.route.
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Text is what was found, in one line, and Fix what to do; empty for nothing.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Seen is since when this program has found it wrong, every time that it looked; it
	// may be so for longer. Nil for what is not wrong.
	Seen *time.Time `json:"seen,omitempty"`
	// Objects names what it is about, such as queues.
	Objects []string `json:"objects,omitempty"`
	// View is the view of the dashboard that shows more, and Filter what narrows it.
	View   string `json:"view,omitempty"`
	Filter string `json:"filter,omitempty"`
}

// Checks is what was looked at beyond the alerts: how the broker is wired, and
// whether the rows of the database agree with each other.
type Checks struct {
	Reading
	List []Check `json:"list"`
}

// Count is how many checks came out so.
func (c *Checks) Count(status CheckStatus) (n int) {
	if c == nil {
		return 0
	}
	for i := range c.List {
		if c.List[i].Status == status {
			n++
		}
	}
	return n
}

// Worst orders the checks, the worst first and otherwise as they stand.
func (s CheckStatus) Worst() int {
	switch s {
	case CheckProblem:
		return 0
	case CheckWarning:
		return 1
	case CheckUnknown:
		return 2
	default:
		return 3
	}
}

// Checks makes every check. Both sources are asked at the same time; of one that
// does not answer the checks are unknown, and only without both it is an error.
func (m *Monitor) Checks(ctx context.Context) (*Checks, error) {
	c := &Checks{}
	var wiring *broker.Wiring
	var workers []int64
	var rows []Check
	starting := false // a replica of the engine
	brokerErr, databaseErr := m.both(ctx, "checks", &c.Reading, func(b BrokerReader) (err error) {
		wiring, err = b.ReadWiring(ctx)
		return err
	}, func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
		if workers, err = tx.CheckWorkerIDs(ctx, WorkerLimit); err != nil {
			return fmt.Errorf("list the ids of workers: %w", err)
		}
		replicas, err := m.ReadReplicas(ctx, tx, s, c.At)
		if err != nil {
			return err
		}
		starting = replicas != nil && slices.ContainsFunc(replicas.List,
			func(r Replica) bool { return r.Starting(c.At) })
		rows, err = m.checkRows(ctx, tx, s)
		return err
	})
	if brokerErr != nil && databaseErr != nil {
		return c, errors.Join(brokerErr, databaseErr)
	}
	if databaseErr != nil {
		workers, rows = nil, unmade(rowChecks, fmt.Sprintf("the database did not answer: %v", databaseErr))
	}
	if brokerErr != nil || wiring == nil {
		c.List = unmade(topologyChecks, fmt.Sprintf("the management interface did not answer: %v", brokerErr))
	} else {
		c.List = CheckTopology(wiring, workers)
		if starting {
			uncounted(c.List, wiring)
		}
	}
	c.List = append(c.List, rows...)
	at := c.At
	if at.IsZero() {
		at = time.Now() // the database's time is not to be had
	}
	m.holdChecks(c.List, at)
	return c, nil
}

// uncounted takes back that dead letters have no consumer, which the broker counts
// every few seconds only.
func uncounted(list []Check, w *broker.Wiring) {
	alone := slices.ContainsFunc(w.Queues, func(q broker.QueueInfo) bool {
		return q.Name == message.QueueDeadLetter && q.Consumers != nil && *q.Consumers == 0
	})
	for i := range list {
		if one := &list[i]; alone && one.Name == CheckDeadLetterQueue && one.Status == CheckProblem {
			one.Status, one.Text, one.Fix = CheckUnknown,
				"a replica has just started: its consumers are not counted yet", ""
		}
	}
}

// unmade says why none of these checks could be made.
func unmade(names []string, why string) []Check {
	list := make([]Check, 0, len(names))
	for _, name := range names {
		list = append(list, Check{Name: name, Status: CheckUnknown, Text: why})
	}
	return list
}

// verdict is a problem with these objects, or well if there are none.
func verdict(name string, objects []string, problem Check, well string) Check {
	if len(objects) == 0 {
		return Check{Name: name, Status: CheckOK, Text: well}
	}
	problem.Name, problem.Status, problem.Objects = name, CheckProblem, objects
	return problem
}

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
	// leakedAfter is how long an ended execution may hold its slot: a sweep releases it sooner.
	leakedAfter = 2 * time.Minute
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
		Fix:  "a replica takes them up again within minutes; look at its loop recovery, or requeue with A retry",
		View: "executions", Filter: "status:requested",
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
		Text: phrase.Plural(work, "execution is", "executions are") + " at " + countOf(names, "worker") +
			", silent for more than " + phrase.Span(m.cfg.StaleAfter),
		Fix: "the engine ends or repeats them when it takes the worker for lost; a worker that comes back reports its own", View: "workers", Filter: first(names),
	}, "no execution is at a worker that is silent"))
	rows, err := tx.RepairStats(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("compare queue_stats: %w", err)
	}
	var stats []string
	for _, row := range rows {
		if row.Kept {
			stats = append(stats, row.Ref)
		}
	}
	return append(list, verdict(checkStats, stats, Check{
		Text: "queue_stats of " + countOf(stats, "action") + " differ from its queues",
		Fix:  "A repair on the queue counts again", View: "queues", Filter: first(stats),
	}, "queue_stats agree with the queues")), nil
}

// checkSlotRows compares the slot counters of queues with the holders, as the repair does.
func checkSlotRows(ctx context.Context, tx *store.Tx) (slots, leaked Check, err error) {
	queues, err := tx.RepairQueues(ctx, nil, 0, false)
	if err != nil {
		return slots, leaked, fmt.Errorf("count slots: %w", err)
	}
	ended, err := tx.RepairEnded(ctx, store.RepairEndedParams{OlderThan: leakedAfter.Seconds(), Page: checkLeakedBound})
	if err != nil {
		return slots, leaked, fmt.Errorf("look for leaked slots: %w", err)
	}
	var names, ids []string
	var counted, held int64
	for _, q := range queues {
		names, counted, held = append(names, q.Ref), counted+int64(q.ActiveCount), held+int64(q.Active)
	}
	slots = verdict(checkSlots, names, Check{
		Text: "the queues count " + phrase.Plural(counted, "slot", "slots") + ", " +
			phrase.Plural(held, "execution holds", "executions hold") + " one",
		Fix: "`attune-executor doctor` names the queues; A repair counts one again", View: "queues",
		Filter: first(names),
	}, "each queue counts the slots that executions hold")
	action := ""
	for _, h := range ended {
		ids, action = append(ids, strconv.FormatInt(h.ID, 10)), h.ActionRef
	}
	leaked = verdict(checkLeaked, ids, Check{
		Text: countOf(ids, "ended execution") + stillHold(ids) + ", one of " + action + ": its queue cannot use it",
		Fix:  "a replica gives it back within a minute; A repair on the queue does it now", View: "queues",
		Filter: action,
	}, "no execution that has ended holds a slot")
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
			list = append(list,
				Check{Name: name, Status: CheckUnknown, Text: "the schema has none of the engine's own columns"})
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

// Memory is since when this program has found what nobody writes down the beginning
// of. What is no longer found is forgotten.
type Memory struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Hold remembers what was found at a time, of all whose key begins so, and says since
// when each was.
func (m *Memory) Hold(prefix string, found []string, at time.Time) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, begun := map[string]time.Time{}, make([]time.Time, len(found))
	for i, key := range found {
		key = prefix + key
		if begun[i] = at; !m.since[key].IsZero() {
			begun[i] = m.since[key]
		}
		kept[key] = begun[i]
	}
	for key, since := range m.since {
		if !strings.HasPrefix(key, prefix) {
			kept[key] = since
		}
	}
	m.since = kept
	return begun
}

// holdChecks says of what is wrong since when this program has seen it.
func (m *Monitor) holdChecks(list []Check, at time.Time) {
	var found []string
	for i := range list {
		if list[i].Status.wrong() {
			found = append(found, list[i].Name)
		}
	}
	begun := m.memory.Hold("check\x1f", found, at)
	for i := range list {
		if list[i].Status.wrong() {
			list[i].Seen, begun = &begun[0], begun[1:]
		}
	}
}

func (s CheckStatus) wrong() bool { return s == CheckProblem || s == CheckWarning }
