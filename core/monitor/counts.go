package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Counts is how many executions there are by status.
type Counts struct {
	Live   Live
	Recent Recent
	Floor  int64 // the smallest id requested within the recent window
}

// ReadCounts counts unfinished executions and those that ended lately.
func ReadCounts(ctx context.Context, tx *store.Tx, s Shape) (*Counts, error) {
	o := &Counts{Live: Live{StuckAfter: StuckAfter}, Recent: Recent{Window: RecentWindow}}

	floor, err := tx.MonitorFloor(ctx, RecentWindow.Seconds())
	if err != nil {
		return nil, fmt.Errorf("find where the recent executions begin: %w", err)
	}
	o.Floor = floor
	if !s.Ours {
		return o, publishedCounts(ctx, tx, floor, o)
	}
	live, err := tx.MonitorLive(ctx, StuckAfter.Seconds(), sampleBound)
	if err != nil {
		return nil, fmt.Errorf("count unfinished executions: %w", err)
	}
	total := int64(0)
	for _, row := range live {
		total += row.N
	}
	cut := total >= sampleBound
	for _, row := range live {
		o.set(string(row.Status), Count{Value: row.N, AtLeast: cut})
		o.Live.Stuck.Value += row.Stuck
	}
	o.Live.Stuck.AtLeast = cut && o.Live.Stuck.Value > 0
	if cut {
		o.Live.Requested.AtLeast = true
	}
	return o, recentEnds(ctx, tx, floor, o)
}

func recentEnds(ctx context.Context, tx *store.Tx, floor int64, o *Counts) error {
	ends, err := tx.MonitorEnds(ctx, countBound, floor)
	if err != nil {
		return fmt.Errorf("count recently ended executions: %w", err)
	}
	for _, row := range ends {
		o.set(row.Status, Count{Value: row.N, AtLeast: row.N >= countBound})
	}
	const lookBack = 500
	failed, err := tx.MonitorFailedLastMinute(ctx, lookBack)
	if err != nil {
		return fmt.Errorf("count the failures of the last minute: %w", err)
	}
	o.Recent.FailedLastMinute = &Count{Value: failed, AtLeast: failed >= lookBack}
	o.Recent.Reasons, err = readFailReasons(ctx, tx, floor)
	return err
}

func publishedCounts(ctx context.Context, tx *store.Tx, floor int64, o *Counts) error {
	counts, err := tx.MonitorPublishedCounts(ctx, countBound, floor)
	if err != nil {
		return fmt.Errorf("count executions by status: %w", err)
	}
	for _, row := range counts {
		o.set(row.Status, Count{Value: row.N, AtLeast: row.N >= countBound})
	}
	stuck, err := tx.MonitorPublishedStuck(ctx, StuckAfter.Seconds(), countBound)
	if err != nil {
		return fmt.Errorf("count stuck executions: %w", err)
	}
	o.Live.Stuck = Count{Value: stuck, AtLeast: stuck >= countBound}
	return nil
}

// set puts the count of a status where it belongs.
func (o *Counts) set(status string, c Count) {
	field := map[attune.Status]*Count{
		attune.StatusRequested: &o.Live.Requested, attune.StatusScheduling: &o.Live.Scheduling,
		attune.StatusScheduled: &o.Live.Scheduled, attune.StatusRunning: &o.Live.Running,
		attune.StatusCanceling: &o.Live.Canceling, attune.StatusCompleted: &o.Recent.Completed,
		attune.StatusFailed: &o.Recent.Failed, attune.StatusCancelled: &o.Recent.Cancelled,
		attune.StatusTimeout: &o.Recent.Timeout, attune.StatusAbandoned: &o.Recent.Abandoned,
	}[attune.Status(status)]
	if field != nil {
		*field = c
	}
}

// reasonScan is how many of the newest that failed, timed out and were abandoned are
// asked why, and reasonRows how many reasons are told apart.
const (
	ReasonScan = 200
	reasonRows = 8
)

// FailReason is why some of the executions that ended badly did.
type FailReason struct {
	// Reason is what they say alike, with every number as a hash; or how they ended,
	// where they say nothing.
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

func readFailReasons(ctx context.Context, tx *store.Tx, floor int64) ([]FailReason, error) {
	rows, err := tx.MonitorFailReasons(ctx, ReasonScan, floor)
	if err != nil {
		return nil, fmt.Errorf("ask why executions failed: %w", err)
	}
	return failReasons(rows), nil
}

// failReasons puts together what differs by numbers only, the most frequent first; the
// rest is one.
func failReasons(rows []store.MonitorFailReasonsRow) []FailReason {
	counts := map[string]int64{}
	for _, r := range rows {
		counts[cmp.Or(Alike(r.Reason), Alike(r.Status))] += r.N
	}
	list := make([]FailReason, 0, len(counts))
	for reason, n := range counts {
		list = append(list, FailReason{reason, n})
	}
	slices.SortFunc(list, func(a, b FailReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	if len(list) <= reasonRows {
		return list
	}
	other := FailReason{Reason: "other"}
	for _, r := range list[reasonRows-1:] {
		other.Count += r.Count
	}
	return append(list[:reasonRows-1], other)
}

var numbers = regexp.MustCompile(`[0-9]+`)

// Alike is what reasons have in common that name an id, a time or an exit code: their
// first line, without numbers.
func Alike(reason string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	return numbers.ReplaceAllString(line, "#")
}

// Flows is what of workflows and questions somebody has to look at.
type Flows struct {
	// Inquiries counts the questions that wait for an answer, Late those of them that
	// have used up most of their time, Oldest is how long the oldest has waited.
	Inquiries Count         `json:"inquiries"`
	Late      Count         `json:"inquiries_late"`
	Oldest    time.Duration `json:"inquiries_oldest_ns"`
	// Paused counts the workflows that are paused, Failed those that ended badly of
	// what was requested within Window.
	Paused Count         `json:"workflows_paused"`
	Failed Count         `json:"workflows_failed"`
	Window time.Duration `json:"window_ns"`
}

// flowBound is where counting paused and failed workflows and questions stops.
const flowBound = 500

// ReadFlows counts what waits for somebody; nil where the schema does not record it.
func ReadFlows(ctx context.Context, tx *store.Tx, s Shape, floor int64) (*Flows, error) {
	err := RecordsWorkflows(ctx, tx, s)
	if err == nil {
		err = inquiriesThere(ctx, tx)
	}
	if errors.Is(err, ErrUnmigrated) {
		return nil, nil //nolint:nilnil // there is nothing to count and nothing wrong
	}
	if err != nil {
		return nil, err
	}
	asked, err := tx.CountOpenInquiries(ctx, flowBound)
	if err != nil {
		return nil, fmt.Errorf("count open inquiries: %w", err)
	}
	trouble, err := tx.ViewWorkflowTrouble(ctx, flowBound, floor)
	if err != nil {
		return nil, fmt.Errorf("count paused and failed workflows: %w", err)
	}
	count := func(n int64) Count { return Count{Value: n, AtLeast: n >= flowBound} }
	return &Flows{
		Inquiries: count(asked.Open), Late: count(asked.Late),
		Oldest: time.Duration(asked.OldestSeconds * float64(time.Second)),
		Paused: count(trouble.Paused), Failed: count(trouble.Failed), Window: RecentWindow,
	}, nil
}

// Words writes the count before a word.
func (c Count) Words(one, many string) string {
	text := phrase.Plural(c.Value, one, many)
	if c.AtLeast {
		return "at least " + text
	}
	return text
}
