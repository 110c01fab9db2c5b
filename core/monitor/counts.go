package monitor

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Counts counts executions by status.
type Counts struct {
	Live   Live
	Recent Recent
}

// ReadCounts counts unfinished and recently ended executions.
func ReadCounts(ctx context.Context, tx *store.Tx, s Shape) (*Counts, error) {
	o := &Counts{Live: Live{StuckAfter: StuckAfter}, Recent: Recent{Window: RecentWindow}}

	if !s.Ours {
		return o, publishedCounts(ctx, tx, o)
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
	o.Live.Requested.AtLeast = cut
	return o, recentEnds(ctx, tx, o)
}

func recentEnds(ctx context.Context, tx *store.Tx, o *Counts) error {
	ends, err := tx.RecentEnds(ctx, RecentWindow.Seconds())
	if err != nil {
		return fmt.Errorf("count recently ended executions: %w", err)
	}
	r := &o.Recent
	r.Completed.Value, r.Failed.Value, r.Timeout.Value = ends.Completed, ends.Failed, ends.Timeout
	r.Cancelled.Value, r.Abandoned.Value = ends.Cancelled, ends.Abandoned
	r.FailedLastMinute = &Count{Value: ends.FailedInMinute}
	reasons, err := tx.MonitorFailReasons(ctx, []string{}, ReasonScan, RecentWindow.Seconds())
	if err != nil {
		return fmt.Errorf("read why executions failed: %w", err)
	}
	o.Recent.Reasons = failReasons(reasons)
	return nil
}

func publishedCounts(ctx context.Context, tx *store.Tx, o *Counts) error {
	floor, err := tx.MonitorFloor(ctx, RecentWindow.Seconds())
	if err != nil {
		return fmt.Errorf("find where the recent executions begin: %w", err)
	}
	counts, err := tx.MonitorPublishedCounts(ctx, countBound, floor)
	if err != nil {
		return fmt.Errorf("count executions by status: %w", err)
	}
	for _, row := range counts {
		o.set(row.Status, upTo(row.N, countBound))
	}
	stuck, err := tx.MonitorPublishedStuck(ctx, StuckAfter.Seconds(), countBound)
	if err != nil {
		return fmt.Errorf("count stuck executions: %w", err)
	}
	o.Live.Stuck = upTo(stuck, countBound)
	return nil
}

// set stores the count of a status.
func (o *Counts) set(status string, c Count) {
	field := map[lifecycle.Status]*Count{
		lifecycle.StatusRequested: &o.Live.Requested, lifecycle.StatusScheduling: &o.Live.Scheduling,
		lifecycle.StatusScheduled: &o.Live.Scheduled, lifecycle.StatusRunning: &o.Live.Running,
		lifecycle.StatusCanceling: &o.Live.Canceling, lifecycle.StatusCompleted: &o.Recent.Completed,
		lifecycle.StatusFailed: &o.Recent.Failed, lifecycle.StatusCancelled: &o.Recent.Cancelled,
		lifecycle.StatusTimeout: &o.Recent.Timeout, lifecycle.StatusAbandoned: &o.Recent.Abandoned,
	}[lifecycle.Status(status)]
	if field != nil {
		*field = c
	}
}

// ReasonScan is how many of the newest failures of each status are read, reasonRows how many reasons
// are listed.
const (
	ReasonScan = 200
	reasonRows = 8
)

// FailReason counts failures with the same reason.
type FailReason struct {
	// Reason is the common text with numbers as #, or the status.
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// failReasons merges reasons that differ only in numbers, the most frequent first; the rest is one.
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

// Alike is the first line of a reason without its numbers, such as ids and exit codes.
func Alike(reason string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	return numbers.ReplaceAllString(line, "#")
}

// Flows counts workflows and inquiries that need an operator.
type Flows struct {
	// Late counts inquiries that have used most of their time, Oldest is the longest wait.
	Inquiries Count         `json:"inquiries"`
	Late      Count         `json:"inquiries_late"`
	Oldest    time.Duration `json:"inquiries_oldest_ns"`
	// Failed counts the workflows that failed within Window.
	Paused Count         `json:"workflows_paused"`
	Failed Count         `json:"workflows_failed"`
	Window time.Duration `json:"window_ns"`
}

// flowBound is where counting stops.
const flowBound = 500

// ReadFlows counts workflows and inquiries that need an operator; nil where they are not recorded.
func ReadFlows(ctx context.Context, tx *store.Tx, s Shape) (*Flows, error) {
	if !s.Ours {
		return nil, nil //nolint:nilnil // there is nothing to count and nothing wrong
	}
	asked, err := tx.CountOpenInquiries(ctx, flowBound)
	if err != nil {
		return nil, fmt.Errorf("count open inquiries: %w", err)
	}
	paused, err := tx.CountPausedWorkflows(ctx, flowBound)
	if err != nil {
		return nil, fmt.Errorf("count paused workflows: %w", err)
	}
	failed, err := tx.RecentlyFailedWorkflows(ctx, RecentWindow.Seconds())
	if err != nil {
		return nil, fmt.Errorf("count failed workflows: %w", err)
	}
	return &Flows{
		Inquiries: upTo(asked.Open, flowBound), Late: upTo(asked.Late, flowBound), Oldest: Seconds(asked.OldestSeconds),
		Paused: upTo(paused, flowBound), Failed: Count{Value: failed}, Window: RecentWindow,
	}, nil
}

// Words writes the count with its noun.
func (c Count) Words(one, many string) string {
	text := phrase.Plural(c.Value, one, many)
	if c.AtLeast {
		return "at least " + text
	}
	return text
}
