package monitor

import (
	"strconv"
	"time"
)

// The names of the two sources that a read model is made from.
const (
	SourceDatabase = "database"
	SourceBroker   = "broker"
)

// Source says how one source behaved during one read.
type Source struct {
	Name    string        `json:"name"`
	Latency time.Duration `json:"latency_ns"`
	// Error is empty when the source answered.
	Error string `json:"error,omitempty"`
}

// OK reports whether the source answered.
func (s Source) OK() bool { return s.Error == "" }

// Reading is what every result begins with: when it was read and from what.
type Reading struct {
	// At is the database's time. It is zero when the database did not answer.
	At      time.Time `json:"at,omitzero"`
	Sources []Source  `json:"sources"`
}

// ReadAt is the database's time of the reading.
func (r Reading) ReadAt() time.Time { return r.At }

// Source returns the state of the named source, and false if the result was
// not read from it.
func (r Reading) Source(name string) (Source, bool) {
	for _, s := range r.Sources {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}

// Count is a number of rows that may have been cut off at a bound.
type Count struct {
	Value int64 `json:"value"`
	// AtLeast is true when counting stopped at a bound.
	AtLeast bool `json:"at_least,omitempty"`
}

// Live counts executions that have not ended, by status.
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

// Recent counts executions requested within Window by how they ended.
type Recent struct {
	Window    time.Duration `json:"window_ns"`
	Completed Count         `json:"completed"`
	Failed    Count         `json:"failed"`
	Cancelled Count         `json:"cancelled"`
	Timeout   Count         `json:"timeout"`
	Abandoned Count         `json:"abandoned"`
	// FailedLastMinute counts what ended badly during the last minute. It is
	// nil where the schema does not record when a row ended.
	FailedLastMinute *Count `json:"failed_last_minute"`
	// Reasons say why those that ended badly did, the most frequent first, of the
	// newest of each status; empty where that is not recorded.
	Reasons []FailReason `json:"reasons,omitempty"`
}

// QueueTotals sums up every admission queue.
type QueueTotals struct {
	// Queues is the number of queues that are not left over, Busy of those with
	// anything in them.
	Queues int64 `json:"queues"`
	Busy   int64 `json:"busy"`
	Queued int64 `json:"queued"`
	Active int64 `json:"active"`
	// Slots sums the limits of the busy queues that have one.
	Slots int64 `json:"slots"`
	// Completed only ever grows; two polls make a rate.
	Completed int64 `json:"completed"`
}

// Worker is one registered worker.
type Worker struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Role   string `json:"role"`
	Host   string `json:"host,omitempty"`
	Status string `json:"status"`
	// Heartbeat is the last sign of life, by the database's clock if it was noted by
	// that; nil when there never was one.
	Heartbeat    *time.Time `json:"heartbeat"`
	Cordoned     bool       `json:"cordoned"`
	CordonReason string     `json:"cordon_reason,omitempty"`
	Draining     bool       `json:"draining"`
	// SuspectSince is since when the worker is given nothing because the broker
	// returned what it was handed, and SuspectReason why; nil and empty while it
	// is trusted.
	SuspectSince  *time.Time `json:"suspect_since"`
	SuspectReason string     `json:"suspect_reason,omitempty"`
	// Assigned counts executions handed to the worker and not yet released. It
	// is nil where nobody keeps that count.
	Assigned *int64 `json:"assigned"`
	// Capacity is what the worker says it can run at once; nil if it does not say.
	Capacity *int64    `json:"capacity"`
	Runtimes []string  `json:"runtimes,omitempty"`
	Version  string    `json:"version,omitempty"`
	Created  time.Time `json:"created"`
	// Registered is when its present process registered, or Created where that is unknown.
	Registered time.Time `json:"registered"`
	// Probe is what the engine saw when it last looked at the worker; nil when it
	// never has.
	Probe *WorkerProbe `json:"probe"`
}

// WorkerHealth is the verdict on a worker: what its heartbeat, its queue and its row
// say together, the strictest of them.
type WorkerHealth string

// The verdicts, from worst to best.
const (
	WorkerStale WorkerHealth = "stale"
	// WorkerDeaf sends heartbeats, but nobody consumes its queue.
	WorkerDeaf     WorkerHealth = "deaf"
	WorkerSuspect  WorkerHealth = "suspect"
	WorkerInactive WorkerHealth = "inactive"
	WorkerDraining WorkerHealth = "draining"
	WorkerCordoned WorkerHealth = "cordoned"
	// WorkerUnhealthy is given nothing, WorkerDegraded what the others have no room
	// for.
	WorkerUnhealthy WorkerHealth = "unhealthy"
	WorkerBusy      WorkerHealth = "busy"
	WorkerDegraded  WorkerHealth = "degraded"
	WorkerActive    WorkerHealth = "active"
)

// Health judges the worker at the given database time by what the database says of it.
func (w Worker) Health(now time.Time, staleAfter time.Duration) WorkerHealth {
	return w.Judge(now, staleAfter, nil).Health
}

// WorkerTotals sums up the workers that were read. Each is in one count beside Total.
type WorkerTotals struct {
	Total  int64 `json:"total"`
	Active int64 `json:"active"`
	Busy   int64 `json:"busy"`
	// Cordoned counts those that drain too.
	Cordoned int64 `json:"cordoned"`
	Suspect  int64 `json:"suspect"`
	// Deaf workers send heartbeats and consume nothing.
	Deaf int64 `json:"deaf"`
	// Unhealthy workers are given nothing, degraded ones what the others have no room for.
	Unhealthy int64 `json:"unhealthy"`
	Degraded  int64 `json:"degraded"`
	Stale     int64 `json:"stale"`
	Inactive  int64 `json:"inactive"`
	// Assigned and Capacity cover the workers that are given work: the active, the busy
	// and the degraded ones.
	Assigned int64 `json:"assigned"`
	Capacity int64 `json:"capacity"`
}

// Working is how many workers are given work.
func (t *WorkerTotals) Working() int64 { return t.Active + t.Busy + t.Degraded }

// Workers is the list of workers.
type Workers struct {
	Reading
	StaleAfter time.Duration `json:"stale_after_ns"`
	// HeartbeatEvery is how often a worker is expected to send a heartbeat.
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
	// Reason is the message of the result, cut short; empty when there is none.
	Reason string `json:"reason,omitempty"`
	// Params are its parameters in a line, without secrets; empty unless they were
	// asked for.
	Params string `json:"params,omitempty"`
}

// Executions is one page of executions, the newest first.
type Executions struct {
	Reading
	Filter ExecutionFilter `json:"filter"`
	// From is the key that the page was read from: rows have smaller ids. Zero
	// means from the newest.
	From int64       `json:"from,omitempty"`
	List []Execution `json:"list"`
	// Next continues the list; it is zero on the last page.
	Next int64 `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound before it had looked
	// at every row, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
	// Looked is how many executions a search by parameters looked at for this page.
	Looked int64 `json:"looked,omitempty"`
}

// Try is which attempt of its chain the execution is, counted from 1.
func (e *Execution) Try() int64 { return e.RetryCount + 1 }

// Tries writes which attempt something with so many retries is, of at most how many that
// the engine makes; - where that is not bounded.
func Tries(retries int64, most *int64) string {
	limit := "-"
	if most != nil {
		limit = strconv.FormatInt(*most+1, 10)
	}
	return strconv.FormatInt(retries+1, 10) + "/" + limit
}

// Step is one entry of an execution's timeline.
type Step struct {
	At     time.Time `json:"at"`
	Status string    `json:"status,omitempty"`
	Worker *int64    `json:"worker,omitempty"`
	// Changed names the recorded fields that changed with this step.
	Changed []string `json:"changed,omitempty"`
}

// ExecutionDetail is everything about one execution that people ask for.
type ExecutionDetail struct {
	Reading
	Execution
	ActionID    *int64 `json:"action_id"`
	Enforcement *int64 `json:"enforcement"`
	Original    *int64 `json:"original_execution"`
	RetryReason string `json:"retry_reason,omitempty"`
	// Attempt counts hand-overs to a worker; nil where nobody counts them.
	Attempt *int64 `json:"attempt"`
	// Config, Env and Result are the JSON texts, cut at MaxDocument bytes.
	Config string `json:"config,omitempty"`
	Env    string `json:"env_vars,omitempty"`
	Result string `json:"result,omitempty"`
	// Children counts direct children, up to a bound.
	Children Count `json:"children"`
	// Waiting is set while the execution stands in an admission queue.
	Waiting *Waiting `json:"waiting"`
	// Why says in sentences what a requested execution waits for, as Why.Lines
	// does; empty for one that has got further.
	Why []string `json:"why,omitempty"`
	// WorkQueue says which work queue has items leased to it; empty for none.
	WorkQueue string `json:"work_queue,omitempty"`
	Timeline  []Step `json:"timeline"`
	// TimelineKnown is false where no history is kept.
	TimelineKnown bool `json:"timeline_known"`
}

// DeadLetters says how many dead letters there are and what became of them.
type DeadLetters struct {
	Reading
	// Queue is the depth on the broker; nil when the broker did not answer or
	// the queue does not exist.
	Queue *BrokerQueue `json:"queue"`
	// QueueMissing is true when the broker answered that there is no such queue.
	QueueMissing bool `json:"queue_missing,omitempty"`
	// Running is who runs a plan on them now, with the operation and since when; empty
	// where nobody does.
	Running string `json:"running,omitempty"`
	// Ledger counts dead letters by decision; nil where no ledger is kept or the database
	// did not answer.
	Ledger *Ledger `json:"ledger"`
}

// Ledger sums up the dead-letter ledger.
type Ledger struct {
	// Open counts dead letters that wait for a person, Oldest is since when the
	// first of them does; nil when none waits.
	Open   Count      `json:"open"`
	Oldest *time.Time `json:"oldest"`
	// LastDay counts those of the last 24 hours, PerMinute is the pace of the last
	// RatePace.
	LastDay   Count         `json:"last_day"`
	PerMinute float64       `json:"per_minute"`
	ByReason  []LedgerGroup `json:"by_reason"`
	// Recent lists who waits for a person before all others, each the newest first.
	Recent []LedgerEntry `json:"recent"`
}

// LedgerGroup counts recent dead letters that share reason and decision.
type LedgerGroup struct {
	Reason   string    `json:"reason"`
	Decision string    `json:"decision"`
	Count    int64     `json:"count"`
	Newest   time.Time `json:"newest"`
}
