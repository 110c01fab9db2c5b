package monitor

import "time"

// DeadLetterQueue is the broker queue that dead letters arrive in.
const DeadLetterQueue = "attune.dlx.queue"

// The bounds of what one call reads.
const (
	// DefaultPage is the length of a page of executions.
	DefaultPage = 200
	// DefaultQueueLimit bounds the list of queues, WorkerLimit that of workers.
	DefaultQueueLimit = 500
	WorkerLimit       = 500
	// MaxDocument bounds each JSON text of one execution, in bytes.
	MaxDocument = 64 << 10
	// TopRows is how many queues and workers the overview shows.
	TopRows = 8
	// scanBound is how many rows a filtered search looks at before it stops.
	scanBound = 10_000
	// statusBound is the same for each status, whose rows an index finds.
	statusBound = scanBound / 4
	// sampleBound is how many unfinished rows are counted one by one.
	sampleBound = 5_000
	// countBound is where counting recently finished rows stops, per status.
	countBound = 10_000
)

// The windows and thresholds of the overview.
const (
	// RecentWindow is how far back recently finished executions are counted.
	RecentWindow = 15 * time.Minute
	// StuckAfter is how long an execution may be scheduled without being started.
	StuckAfter = 10 * time.Minute
	// HeadWaitLimit is how long the head of a queue may wait before lists mark it, as
	// the built-in rule queue_head_wait has it.
	HeadWaitLimit = 10 * time.Minute
	// DefaultStaleAfter is the age beyond which a heartbeat is stale: three
	// missed beats of thirty seconds.
	DefaultStaleAfter = 90 * time.Second
	// DefaultScheduledTimeout is how long an execution may be scheduled.
	DefaultScheduledTimeout = 5 * time.Minute
)
