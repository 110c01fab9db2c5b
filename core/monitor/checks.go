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

// CheckStatus is the result of a check.
type CheckStatus string

// The results, from good to bad. An unknown check says nothing about its subject.
const (
	CheckOK      CheckStatus = "ok"
	CheckUnknown CheckStatus = "unknown"
	CheckWarning CheckStatus = "warning"
	CheckProblem CheckStatus = "problem"
)

// Check is the result of one check. Checks only read.
type Check struct {
	// Name is the subject, such as topology.route.
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Text is the finding in one line, Fix what to do about it.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Seen is since when this program has found the problem without a break. It may be older.
	Seen *time.Time `json:"seen,omitempty"`
	// Objects names the affected things, such as queues.
	Objects []string `json:"objects,omitempty"`
	// View and Filter open the dashboard at the affected things.
	View   string `json:"view,omitempty"`
	Filter string `json:"filter,omitempty"`
}

// Checks are findings beyond the alerts: how the broker is wired, and whether the rows of the
// database agree.
type Checks struct {
	Reading
	List []Check `json:"list"`
}

// Count counts the checks with this result.
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

// Worst ranks results, the worst first.
func (s CheckStatus) Worst() int {
	return slices.Index([]CheckStatus{CheckProblem, CheckWarning, CheckUnknown, CheckOK}, s)
}

// Checks runs every check. The checks of a source without an answer are unknown; without both
// sources it fails.
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
		ids, err := tx.CheckWorkerIDs(ctx, WorkerLimit)
		if err != nil {
			return fmt.Errorf("list the ids of workers: %w", err)
		}
		workers = append([]int64{}, ids...) // no worker is an answer too
		replicas, err := m.ReadReplicas(ctx, tx, s, c.At)
		if err != nil {
			return err
		}
		starting = replicas != nil && slices.ContainsFunc(replicas.List,
			func(r Replica) bool { return r.Starting(c.At) })
		rows, err = m.checkRows(ctx, tx, s)
		rows = append([]Check{checkRoutes(replicas)}, rows...)
		return err
	})
	if brokerErr != nil && databaseErr != nil {
		return c, errors.Join(brokerErr, databaseErr)
	}
	if databaseErr != nil {
		workers, rows = nil, unmade(append([]string{checkRoute}, rowChecks...), store.Trouble(databaseErr).String())
	}
	if brokerErr != nil || wiring == nil {
		c.List = unmade(brokerChecks, broker.Trouble(brokerErr).String())
	} else {
		c.List = CheckTopology(wiring, workers)
		if starting {
			uncounted(c.List, wiring)
		}
	}
	c.List = append(c.List, rows...)
	at := c.At
	if at.IsZero() {
		at = time.Now() // the database's time is unknown
	}
	m.holdChecks(c.List, at)
	return c, nil
}

// uncounted withdraws the finding that dead letters have no consumer, because the broker counts
// consumers only every few seconds.
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

// unmade reports why none of these checks ran.
func unmade(names []string, why string) []Check {
	return each(names, func(name string) Check { return Check{Name: name, Status: CheckUnknown, Text: why} })
}

// verdict is a problem if there are objects, else ok.
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

const (
	checkLeakedBound = 1_000
	checkOldBound    = 5_000
	// leakedAfter is how long an ended execution may hold its slot: a sweep releases it sooner.
	leakedAfter = 2 * time.Minute
)

// checkRows checks whether rows agree, in one transaction.
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
	ids := each(forgotten, func(r store.CheckForgottenRow) string { return strconv.FormatInt(r.ID, 10) })
	list = append(list, verdict(checkForgotten, ids, Check{
		Text: countOf(ids, "requested execution") + " wait in no queue for more than 10 minutes",
		Fix:  "a replica requests them again within minutes; see its loop recovery, or requeue with A retry",
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
		Fix:  "the engine ends or retries them when it counts the worker as lost; a worker that returns reports its own",
		View: "workers", Filter: first(names),
	}, "no silent worker has an execution"))
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
	var names []string
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
	ids := each(ended, func(r store.RepairEndedRow) string { return strconv.FormatInt(r.ID, 10) })
	action := ""
	if len(ended) > 0 {
		action = ended[len(ended)-1].ActionRef
	}
	leaked = verdict(checkLeaked, ids, Check{
		Text: countOf(ids, "ended execution") + stillHold(ids) + ", one of " + action + ": its queue cannot use it",
		Fix:  "a replica releases it within a minute; A repair on the queue does it now", View: "queues",
		Filter: action,
	}, "no ended execution holds a slot")
	return slots, leaked, nil
}

func publishedRows(ctx context.Context, tx *store.Tx) ([]Check, error) {
	rows, err := tx.CheckPublishedLeaks(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for leaked slots: %w", err)
	}
	ids := each(rows, func(r store.CheckPublishedLeaksRow) string { return strconv.FormatInt(r.ID, 10) })
	leaked := verdict(checkLeaked, ids, Check{
		Text: countOf(ids, "ended execution") + stillHold(ids) + ": the queue cannot use it",
		Fix:  "`attune-executor migrate up` and a replica, which sweep them", View: "queues",
	}, "no ended execution holds a slot")
	others := slices.DeleteFunc(slices.Clone(rowChecks), func(name string) bool { return name == checkLeaked })
	return append([]Check{leaked}, unmade(others, "the schema has none of the engine's own columns")...), nil
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

// Memory keeps since when this program has found a condition whose start is not recorded. It forgets
// conditions that ended.
type Memory struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Hold records the found conditions of a prefix and returns since when each holds.
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

// holdChecks sets since when this program has seen each problem.
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
