package monitor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names of the sources.
const (
	SourceDatabase = "database"
	SourceBroker   = "broker"
)

// Source says how one source behaved during one read.
type Source struct {
	Name    string        `json:"name"`
	Latency time.Duration `json:"latency_ns"`
	// Error is empty when the source answered; Err is the same for errors.Is.
	Error string `json:"error,omitempty"`
	Err   error  `json:"-"`
}

// OK reports whether the source answered.
func (s Source) OK() bool { return s.Error == "" }

// Reading is the head of every result: when and from what it was read.
type Reading struct {
	// At is the database's time; zero when the database did not answer.
	At      time.Time `json:"at,omitzero"`
	Sources []Source  `json:"sources"`
}

// ReadAt is the database's time of the reading.
func (r Reading) ReadAt() time.Time { return r.At }

// DatabaseErr is why the database's half of the result is missing; nil if it is there or was not read.
func (r Reading) DatabaseErr() error {
	s, _ := r.Source(SourceDatabase)
	return s.Err
}

// Source returns the state of the named source, and false if the result was not read from it.
func (r Reading) Source(name string) (Source, bool) {
	for _, s := range r.Sources {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}

// Count is a number of rows, possibly cut off at a bound.
type Count struct {
	Value int64 `json:"value"`
	// AtLeast is true when counting stopped at a bound.
	AtLeast bool `json:"at_least,omitempty"`
}

// upTo is a count that stops at a bound.
func upTo(n, bound int64) Count { return Count{Value: n, AtLeast: n >= bound} }

// Live counts unfinished executions by status.
type Live struct {
	Requested  Count `json:"requested"`
	Scheduling Count `json:"scheduling"`
	Scheduled  Count `json:"scheduled"`
	Running    Count `json:"running"`
	Canceling  Count `json:"canceling"`
	// Stuck counts executions scheduled for longer than StuckAfter.
	Stuck      Count         `json:"stuck"`
	StuckAfter time.Duration `json:"stuck_after_ns"`
}

// Recent counts the executions that ended within Window by how they ended; where the schema does not count them, those
// requested within Window.
type Recent struct {
	Window    time.Duration `json:"window_ns"`
	Completed Count         `json:"completed"`
	Failed    Count         `json:"failed"`
	Cancelled Count         `json:"cancelled"`
	Timeout   Count         `json:"timeout"`
	Abandoned Count         `json:"abandoned"`
	// FailedLastMinute is nil where the schema does not record when an execution ended.
	FailedLastMinute *Count `json:"failed_last_minute"`
	// Reasons counts the reasons of the newest failures, the most frequent first.
	Reasons []FailReason `json:"reasons,omitempty"`
}

// QueueTotals sums up all admission queues.
type QueueTotals struct {
	// Queues counts queues that are not leftovers, Busy the queues that hold anything.
	Queues int64 `json:"queues"`
	Busy   int64 `json:"busy"`
	Queued int64 `json:"queued"`
	Active int64 `json:"active"`
	// Slots sums the limits of the busy queues.
	Slots int64 `json:"slots"`
	// Completed only grows; two polls give a rate.
	Completed int64 `json:"completed"`
}

// Worker is one registered worker.
type Worker struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Role   string `json:"role"`
	Host   string `json:"host,omitempty"`
	Status string `json:"status"`
	// Heartbeat is the last one, by the database's clock where it was recorded; nil if none came.
	Heartbeat    *time.Time `json:"heartbeat"`
	Cordoned     bool       `json:"cordoned"`
	CordonReason string     `json:"cordon_reason,omitempty"`
	Draining     bool       `json:"draining"`
	// SuspectSince and SuspectReason are set while the worker gets no work because the broker
	// returned a dispatch.
	SuspectSince  *time.Time `json:"suspect_since"`
	SuspectReason string     `json:"suspect_reason,omitempty"`
	// Assigned counts executions dispatched to the worker and not released; nil where it is not
	// recorded.
	Assigned *int64 `json:"assigned"`
	// Capacity is how many executions the worker announces to run at once; nil if it does not say.
	Capacity *int64    `json:"capacity"`
	Runtimes []string  `json:"runtimes,omitempty"`
	Version  string    `json:"version,omitempty"`
	Created  time.Time `json:"created"`
	// Registered is when the present process registered, or Created if unknown.
	Registered time.Time `json:"registered"`
	// Restarts counts the processes that replaced another one within RestartSpan, Abandoned what was abandoned then.
	Restarts  int64 `json:"restarts"`
	Abandoned int64 `json:"abandoned"`
	// Probe is the engine's last observation of the worker; nil if there is none.
	Probe *WorkerProbe `json:"probe"`
}

const (
	// RestartSpan is the time within which restarts of a worker count.
	RestartSpan = 10 * time.Minute
	// ManyRestarts is the number of restarts that no change of its version explains.
	ManyRestarts = 3
)

// RestartText says how often a worker was restarted, and what was lost.
func RestartText(restarts, abandoned int64) string {
	return fmt.Sprintf("restarted %d times in 10 min, abandoned %d", restarts, abandoned)
}

// WorkerName is the name of a worker, or its id while the name is unknown.
func WorkerName(id *int64, name string) string {
	if id == nil {
		return "-"
	}
	return cmp.Or(name, "worker "+strconv.FormatInt(*id, 10))
}

// WorkerHealth is the strictest of what heartbeat, queue and row of a worker say.
type WorkerHealth string

// The states of workers, from worst to best.
const (
	WorkerStale WorkerHealth = "stale"
	// WorkerDeaf sends heartbeats, but its queue has no consumer.
	WorkerDeaf     WorkerHealth = "deaf"
	WorkerSuspect  WorkerHealth = "suspect"
	WorkerInactive WorkerHealth = "inactive"
	WorkerDraining WorkerHealth = "draining"
	WorkerCordoned WorkerHealth = "cordoned"
	// WorkerUnhealthy gets no work, WorkerDegraded only what the other workers have no capacity for.
	WorkerUnhealthy WorkerHealth = "unhealthy"
	WorkerBusy      WorkerHealth = "busy"
	WorkerDegraded  WorkerHealth = "degraded"
	WorkerActive    WorkerHealth = "active"
)

// Health evaluates the worker at the given database time by the database alone.
func (w Worker) Health(now time.Time, staleAfter time.Duration) WorkerHealth {
	return w.Assess(now, staleAfter, nil).Health
}

// notedSkew is the skew of a worker's clock from which its note names it.
const notedSkew = 5 * time.Second

// SkewText says how far a clock is ahead or behind.
func SkewText(d time.Duration) string {
	text := d.Abs().Round(time.Second).String()
	if d < 0 {
		return text + " behind"
	}
	return text + " ahead"
}

// Note is the reason of a worker's health in a list, and that it restarts again and again; empty if all is well.
func (w *Worker) Note(v Assessment) (note string) {
	switch v.Health {
	case WorkerStale:
		if note = v.Why; w.Heartbeat != nil {
			note = fmt.Sprintf("hb stale, %d assigned", *cmp.Or(w.Assigned, new(int64)))
		}
	case WorkerDeaf:
		note = "its queue has no consumer"
	case WorkerSuspect:
		note = cmp.Or(w.SuspectReason, v.Why)
	case WorkerDraining:
		note = "takes no more work"
	case WorkerInactive:
		note = w.Unable()
	case WorkerBusy:
		note = "at capacity"
	case WorkerActive:
		if p := w.Probe; p != nil && p.Skew != nil && p.Skew.Abs() > notedSkew {
			note = "clock " + SkewText(*p.Skew)
		}
	default:
		note = v.Why
	}
	if w.Restarts < ManyRestarts {
		return note
	}
	return strings.TrimSuffix(RestartText(w.Restarts, w.Abandoned)+"; "+note, "; ")
}

// WorkerTotals sums up workers. Each counts in Total and in one other number.
type WorkerTotals struct {
	Total  int64 `json:"total"`
	Active int64 `json:"active"`
	Busy   int64 `json:"busy"`
	// Cordoned includes draining workers.
	Cordoned  int64 `json:"cordoned"`
	Suspect   int64 `json:"suspect"`
	Deaf      int64 `json:"deaf"`
	Unhealthy int64 `json:"unhealthy"`
	Degraded  int64 `json:"degraded"`
	Stale     int64 `json:"stale"`
	Inactive  int64 `json:"inactive"`
	// Assigned and Capacity cover the active, busy and degraded workers.
	Assigned int64 `json:"assigned"`
	Capacity int64 `json:"capacity"`
}

// Working counts the workers that get work.
func (t *WorkerTotals) Working() int64 { return t.Active + t.Busy + t.Degraded }

// Workers is a list of workers.
type Workers struct {
	Reading
	StaleAfter time.Duration `json:"stale_after_ns"`
	// HeartbeatEvery is how often a worker sends a heartbeat.
	HeartbeatEvery time.Duration `json:"heartbeat_every_ns"`
	Totals         WorkerTotals  `json:"totals"`
	List           []Worker      `json:"list"`
	More           bool          `json:"more"`
}

// Execution is one row of the list of executions.
type Execution struct {
	ID         int64      `json:"id"`
	ActionRef  string     `json:"action_ref"`
	Status     string     `json:"status"`
	WorkerID   *int64     `json:"worker_id"`
	WorkerName string     `json:"worker_name,omitempty"`
	Parent     *int64     `json:"parent"`
	Created    time.Time  `json:"created"`
	Updated    time.Time  `json:"updated"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	RetryCount int64      `json:"retry_count"`
	MaxRetries *int64     `json:"max_retries"`
	// RepeatedBy is the execution that repeats this one, which ended without success; 0 without one.
	RepeatedBy int64 `json:"repeated_by,omitempty"`
	// Reason is the message of the result, cut short.
	Reason string `json:"reason,omitempty"`
	// Params are the parameters in one line without secrets; empty unless requested.
	Params string `json:"params,omitempty"`
}

// Executions is one page of executions, the newest first.
type Executions struct {
	Reading
	Filter ExecutionFilter `json:"filter"`
	// From is the cursor of this page: ids are smaller; 0 is the newest.
	From int64       `json:"from,omitempty"`
	List []Execution `json:"list"`
	// Next is the cursor of the next page; 0 at the end.
	Next int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound; Next continues it. Looked counts the executions
	// that it read, Left says about how many it did not.
	Bounded bool  `json:"bounded,omitempty"`
	Looked  int64 `json:"looked,omitempty"`
	Left    int64 `json:"left,omitempty"`
}

// Try is the number of the attempt, counted from 1.
func (e *Execution) Try() string { return Tries(e.RetryCount, e.MaxRetries) }

// Why is the reason in a list, after the execution that repeats this one.
func (e *Execution) Why() string {
	if e.RepeatedBy == 0 {
		return e.Reason
	}
	repeated := "repeated by " + strconv.FormatInt(e.RepeatedBy, 10)
	if e.Reason == "" {
		return repeated
	}
	return repeated + ": " + e.Reason
}

// Tries writes the number of an attempt and of how many the engine makes; - is unbounded.
func Tries(retries int64, most *int64) string {
	limit := "-"
	if most != nil {
		limit = strconv.FormatInt(*most+1, 10)
	}
	return strconv.FormatInt(retries+1, 10) + "/" + limit
}

// Step is one entry of a timeline.
type Step struct {
	At     time.Time `json:"at"`
	Status string    `json:"status,omitempty"`
	Worker *int64    `json:"worker,omitempty"`
	// Changed names the recorded fields that changed.
	Changed []string `json:"changed,omitempty"`
}

// ExecutionDetail is everything about one execution.
type ExecutionDetail struct {
	Reading
	Execution
	ActionID    *int64 `json:"action_id"`
	Enforcement *int64 `json:"enforcement"`
	Original    *int64 `json:"original_execution"`
	RetryReason string `json:"retry_reason,omitempty"`
	// Attempt counts dispatches to workers; nil where they are not counted.
	Attempt *int64 `json:"attempt"`
	// Config, Env and Result are JSON, cut at MaxDocument characters unless the whole execution is read.
	// The whole size of a cut one is in ConfigBytes, EnvBytes or ResultBytes; 0 for one that is not cut.
	Config      string `json:"config,omitempty"`
	ConfigBytes int64  `json:"config_bytes,omitempty"`
	Env         string `json:"env_vars,omitempty"`
	EnvBytes    int64  `json:"env_vars_bytes,omitempty"`
	Result      string `json:"result,omitempty"`
	ResultBytes int64  `json:"result_bytes,omitempty"`
	Children    Count  `json:"children"`
	// Waiting is set while the execution waits in an admission queue.
	Waiting *Waiting `json:"waiting"`
	// Expected is when it will probably start, while it waits in a queue.
	Expected *Expected `json:"expected,omitempty"`
	// Why are the lines of Why for an execution that has not ended.
	Why []string `json:"why,omitempty"`
	// WorkQueue says which work queue leased items to it.
	WorkQueue string `json:"work_queue,omitempty"`
	Timeline  []Step `json:"timeline"`
	// TimelineKnown is false where no history is kept.
	TimelineKnown bool `json:"timeline_known"`
}

// Expected is when a waiting execution will probably take its slot. Package explain finds it.
type Expected struct {
	// At is nil when it is unknown.
	At *time.Time `json:"at"`
	// Basis says why the start is unknown, or that it is at best then.
	Basis string `json:"basis"`
}

// DeadLetters counts dead letters and their decisions.
type DeadLetters struct {
	Reading
	// Queue is nil when the broker did not answer or has no such queue.
	Queue *BrokerQueue `json:"queue"`
	// QueueMissing is true when the broker answered that the queue does not exist.
	QueueMissing bool `json:"queue_missing,omitempty"`
	// Running names the operator who runs a plan on them, with the operation and its start.
	Running string `json:"running,omitempty"`
	// Ledger is nil without a ledger, or if the database did not answer.
	Ledger *Ledger `json:"ledger"`
}

// Ledger sums up the dead-letter ledger.
type Ledger struct {
	// Open counts undecided dead letters, Oldest is when the first of them arrived.
	Open   Count      `json:"open"`
	Oldest *time.Time `json:"oldest"`
	// LastDay counts those of 24 hours, PerMinute is the rate of the last RatePace.
	LastDay   Count         `json:"last_day"`
	PerMinute float64       `json:"per_minute"`
	ByReason  []LedgerGroup `json:"by_reason"`
	// Recent lists undecided dead letters before the others, each the newest first.
	Recent []LedgerEntry `json:"recent"`
}

// LedgerGroup counts recent dead letters with the same reason and decision.
type LedgerGroup struct {
	Reason   string    `json:"reason"`
	Decision string    `json:"decision"`
	Count    int64     `json:"count"`
	Newest   time.Time `json:"newest"`
}
