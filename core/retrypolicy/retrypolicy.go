// Package retrypolicy decides whether, when and why an ended execution is
// repeated. It is pure: what has ended comes in, a verdict comes out.
package retrypolicy

import (
	"time"

	"github.com/attune-go/attune/core/attune"
)

// Reason is why an execution is repeated, as execution.retry_reason spells it.
type Reason string

// The reasons.
const (
	WorkerUnavailable    Reason = "worker_unavailable"
	QueueTimeout         Reason = "queue_timeout"
	WorkerHeartbeatStale Reason = "worker_heartbeat_stale"
	TransientError       Reason = "transient_error"
	ActionFailure        Reason = "action_failure"
	ManualRetry          Reason = "manual_retry"
)

// Config is the policy.
type Config struct {
	Enabled    bool
	BaseDelay  time.Duration
	Multiplier float64
	MaxDelay   time.Duration
	Jitter     float64
	// Unstarted is how often work that no worker has started is repeated, even
	// if its action allows fewer repetitions.
	Unstarted int
}

// Ended is what is known of an execution that has ended.
type Ended struct {
	Status      attune.Status
	Error       string // error and message of its result
	EndedBy     string // failed_by or abandoned_by of its result, empty when a worker ended it
	Started     bool   // a worker has started it
	Retries     int    // how many attempts came before it
	MaxRetries  int    // how many repetitions its action, or itself, allows
	CancelAsked bool   // somebody asked for its end
}

// Verdict is the decision.
type Verdict struct {
	Retry  bool
	Reason Reason
	Delay  time.Duration
	Why    string // for people, set when Retry is false
}

// Decide decides. chance is a number in [0, 1) that spreads the delays.
func (c Config) Decide(Ended, float64) Verdict { return Verdict{} }
