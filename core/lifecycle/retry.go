package lifecycle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// RetryReason is the reason for a retry, spelled as in execution.retry_reason.
type RetryReason string

// The reasons.
const (
	WorkerUnavailable    RetryReason = "worker_unavailable"
	QueueTimeout         RetryReason = "queue_timeout"
	WorkerHeartbeatStale RetryReason = "worker_heartbeat_stale"
	TransientError       RetryReason = "transient_error"
	ActionFailure        RetryReason = "action_failure"
	ManualRetry          RetryReason = "manual_retry"
)

// The values of failed_by and abandoned_by for ends by the engine.
const (
	ByScheduler      = "execution_scheduler"
	ByTimeoutMonitor = "execution_timeout_monitor"
	ByDispatcher     = "execution_dispatcher" // the dispatch reached no queue
	ByDeadLetters    = "dead_letter_handler"
)

// RetryPolicy is the policy.
type RetryPolicy struct {
	Enabled    bool
	BaseDelay  time.Duration
	Multiplier float64
	// MaxDelay bounds a delay before jitter.
	MaxDelay time.Duration
	// Jitter is the largest share by which a delay becomes longer or shorter.
	Jitter        float64
	ActionRetries ActionRetries
	// Unstarted is the number of retries of a dispatched execution that never started, if its action allows fewer.
	Unstarted int
}

// ActionRetries decides whether max_retries of an action takes effect.
type ActionRetries string

// The values of executor.retry.honour_action_max_retries. The zero value is RetriesByOrigin.
const (
	// RetriesByOrigin honours it except on the schema of an existing installation, where the column had no effect.
	RetriesByOrigin ActionRetries = "origin"
	RetriesAlways   ActionRetries = "true"
	RetriesNever    ActionRetries = "false"
)

// Honours reports whether the number of an action takes effect.
func (a ActionRetries) Honours(adopted bool) bool {
	return a == RetriesAlways || a != RetriesNever && !adopted
}

// Ended describes an ended execution.
type Ended struct {
	Status      Status
	Error       string // error and message of its result
	EndedBy     string // failed_by or abandoned_by of its result, empty if a worker ended it
	Started     bool   // a worker has started it
	Retries     int    // number of earlier attempts
	MaxRetries  int    // of the execution itself or of its action
	ByAction    bool   // MaxRetries is that of the action
	Adopted     bool   // the schema is that of an existing installation
	CancelAsked bool   // it has a cancel request
}

// RetryVerdict is the decision.
type RetryVerdict struct {
	Retry  bool
	Reason RetryReason   // set when Retry is true
	Delay  time.Duration // until the retry may start
	Why    string        // for users, set when Retry is false
}

// Decide decides whether, when and why an ended execution is retried. Equal inputs give equal verdicts on every
// replica. chance is a random number in [0, 1) for the jitter.
//
// # Why
//
// Facts of the engine precede the error text. An execution that was running on a dead worker is worker_heartbeat_stale.
// A dispatched execution that never started is worker_unavailable. An action that exceeded its timeout is
// action_failure, not queue_timeout, because it had left its queue. Otherwise the published words in the error text
// decide, so that the reasons match existing installations: an action that fails with "connection refused" is a
// transient_error. Without any of the words the reason is action_failure.
//
// The reason is for users. It does not decide about a retry.
//
// # How often
//
// At most MaxRetries times. If that is the number of the action, ActionRetries decides whether it takes effect.
// An execution that was dispatched and never started did nothing, and its action is not the cause: it is retried at
// least Unstarted times (invariant L2). An execution that the scheduler refused was never dispatched: it is
// retried as its action allows, but never if no worker or no action could ever fit.
//
// A cancelled execution is never retried, nor is one with a cancel request.
func (c RetryPolicy) Decide(e Ended, chance float64) RetryVerdict {
	if why := c.never(e); why != "" {
		return RetryVerdict{Why: why}
	}
	e.Retries = max(e.Retries, 0)
	allowed := max(e.MaxRetries, 0)
	ignored := e.ByAction && allowed > 0 && !c.ActionRetries.Honours(e.Adopted)
	if ignored {
		allowed = 0
	}
	if e.lost() {
		allowed = max(allowed, c.Unstarted)
	}
	switch {
	case e.Retries < allowed:
		return RetryVerdict{Retry: true, Reason: e.reason(), Delay: c.delay(e.Retries, chance)}
	case ignored && allowed == 0:
		return RetryVerdict{Why: "max_retries of its action has no effect here (executor.retry.honour_action_max_retries)"}
	}
	why := "its action allows no retry (max_retries)"
	if allowed > 0 {
		allows := "1 retry is allowed"
		if allowed > 1 {
			allows = fmt.Sprintf("%d retries are allowed", allowed)
		}
		why = fmt.Sprintf("no retry is left: it is attempt %d, and %s", e.Retries+1, allows)
	}
	return RetryVerdict{Why: why}
}

// never is the reason against any retry, or empty.
func (c RetryPolicy) never(e Ended) string {
	switch e.Status {
	case StatusFailed, StatusTimeout, StatusAbandoned:
	case StatusCompleted:
		return "it succeeded"
	case StatusCancelled:
		return "it was cancelled"
	default:
		return fmt.Sprintf("it has not ended: it is %s", e.Status)
	}
	switch {
	case e.CancelAsked:
		return "its cancellation was requested"
	case !c.Enabled:
		return "repeating is switched off (executor.retry.enabled)"
	case e.EndedBy == ByScheduler && e.says("action not found"):
		return "its action does not exist"
	case e.EndedBy == ByScheduler && e.says("no compatible worker", "no worker fits", "incompatible"):
		return "no worker can run it: a retry would be refused the same way"
	case e.EndedBy == ByScheduler && e.says("policy"):
		return "a policy refused it"
	}
	return ""
}

// lost reports whether the execution was dispatched and never started.
func (e Ended) lost() bool {
	switch e.EndedBy {
	case ByTimeoutMonitor, ByDispatcher, ByDeadLetters:
		return !e.Started
	}
	return false
}

// words are the published words, in the published order.
var words = []struct {
	reason RetryReason
	any    []string
}{
	{reason: WorkerUnavailable, any: []string{"worker queue ttl expired", "worker unavailable"}},
	{reason: QueueTimeout, any: []string{"timeout", "timed out"}},
	{reason: WorkerHeartbeatStale, any: []string{"heartbeat", "stale"}},
	{reason: TransientError, any: []string{"transient", "temporary", "connection"}},
}

func (e Ended) reason() RetryReason {
	switch {
	case e.Status == StatusAbandoned:
		return WorkerHeartbeatStale
	case e.lost(), !e.Started && e.says("no workers available"):
		return WorkerUnavailable
	case e.Status == StatusTimeout && e.Started:
		return ActionFailure
	}
	for _, w := range words {
		if e.says(w.any...) {
			return w.reason
		}
	}
	return ActionFailure
}

// says reports whether the error text contains one of the phrases, which are in lower case.
func (e Ended) says(phrases ...string) bool {
	text := strings.ToLower(e.Error)
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}

// delay is the pause before the next retry after so many. Floating point makes an overflow infinite instead of
// negative; the result is capped before it becomes a duration.
func (c RetryPolicy) delay(retries int, chance float64) time.Duration {
	if c.BaseDelay <= 0 || c.MaxDelay <= 0 {
		return 0
	}
	pause := float64(c.BaseDelay) * math.Pow(atLeast(1, c.Multiplier), float64(retries))
	pause = min(pause, float64(c.MaxDelay))
	jitter := min(atLeast(0, c.Jitter), 1)
	chance = min(atLeast(0, chance), 1)
	pause *= 1 + jitter*(2*chance-1)
	if pause >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(pause)
}

// atLeast is the larger of both, and least for NaN.
func atLeast(least, x float64) float64 {
	if x > least {
		return x
	}
	return least
}
