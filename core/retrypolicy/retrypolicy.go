// Package retrypolicy decides whether, when and why an ended execution is repeated. It is pure: an
// ended execution comes in, a verdict comes out, and the same input gives the same verdict on every
// replica.
//
// # Why
//
// The engine's facts about an end precede the text of the end. Work that a worker started before it
// fell silent is worker_heartbeat_stale. Dispatched work that never started is worker_unavailable.
// An action that exceeded its timeout is action_failure, not queue_timeout, because it had left its
// queue. Otherwise the error text is searched for the published words, whatever its author, so that
// the reasons match existing installations: an action that fails with "connection refused" is a
// transient_error. Without any of the words the reason is action_failure.
//
// The reason explains, it decides nothing but the budget of work that was never
// picked up. An action that fails is repeated as often as it allows, whatever
// it printed.
//
// # How often
//
// Up to MaxRetries times, if that is a number of the execution itself; that of its action
// takes effect as Config.ActionRetries says. What was handed over and never picked up has done
// nothing yet, and its action cannot be blamed, so it is repeated up to
// Config.Unstarted times at least (invariant L2). What the scheduler refused was
// never handed over: a repetition is worth it only if the action says so, and
// not at all while no worker, or no action, could ever fit.
//
// What was cancelled, or was to be cancelled and ended otherwise, is never
// repeated.
package retrypolicy

import (
	"fmt"
	"math"
	"strings"
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

// The values of failed_by and abandoned_by for ends by the engine.
const (
	ByScheduler      = "execution_scheduler"
	ByTimeoutMonitor = "execution_timeout_monitor"
	ByDispatcher     = "execution_dispatcher" // the dispatch reached no queue
	ByDeadLetters    = "dead_letter_handler"
)

// Config is the policy.
type Config struct {
	Enabled    bool
	BaseDelay  time.Duration
	Multiplier float64
	// MaxDelay bounds a delay before it is spread.
	MaxDelay time.Duration
	// Jitter is the share by which a delay is spread in both directions.
	Jitter float64
	// ActionRetries says whether max_retries of an action takes effect.
	ActionRetries ActionRetries
	// Unstarted is how often work that never started is repeated, even if its action allows fewer
	// repetitions.
	Unstarted int
}

// ActionRetries says whether max_retries of an action takes effect.
type ActionRetries string

// The values of executor.retry.honour_action_max_retries. The zero value is ByOrigin.
const (
	// ByOrigin honours it unless the schema is that of an existing installation, whose
	// actions run once whatever the column says.
	ByOrigin ActionRetries = "origin"
	Always   ActionRetries = "true"
	Never    ActionRetries = "false"
)

// Honours reports whether the number of an action takes effect.
func (a ActionRetries) Honours(adopted bool) bool { return a == Always || a != Never && !adopted }

// Ended describes an ended execution.
type Ended struct {
	Status      attune.Status
	Error       string // error and message of its result
	EndedBy     string // failed_by or abandoned_by of its result, empty if a worker ended it
	Started     bool   // a worker has started it
	Retries     int    // number of earlier attempts
	MaxRetries  int    // repetitions that its action, or the execution itself, allows
	ByAction    bool   // the number is the action's
	Adopted     bool   // the schema is that of an existing installation
	CancelAsked bool   // it has a cancel request
}

// Verdict is the decision.
type Verdict struct {
	Retry  bool
	Reason Reason        // set when Retry is true
	Delay  time.Duration // until the repetition may begin
	Why    string        // for users, set when Retry is false
}

// Decide decides. chance is a number in [0, 1) that spreads the delays.
func (c Config) Decide(e Ended, chance float64) Verdict {
	if why := c.never(e); why != "" {
		return Verdict{Why: why}
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
		return Verdict{Retry: true, Reason: e.reason(), Delay: c.delay(e.Retries, chance)}
	case ignored && allowed == 0:
		return Verdict{Why: "max_retries of its action has no effect here (executor.retry.honour_action_max_retries)"}
	}
	return Verdict{Why: exhausted(e, allowed)}
}

// never is why the execution is not repeated whatever its budget, or empty.
func (c Config) never(e Ended) string {
	switch e.Status {
	case attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned:
	case attune.StatusCompleted:
		return "it succeeded"
	case attune.StatusCancelled:
		return "it was cancelled"
	default:
		return fmt.Sprintf("it has not ended: it is %s", e.Status)
	}
	switch {
	case e.CancelAsked:
		return "somebody asked for its end"
	case !c.Enabled:
		return "repeating is switched off (executor.retry.enabled)"
	case e.EndedBy == ByScheduler && e.says("action not found"):
		return "its action does not exist"
	case e.EndedBy == ByScheduler && e.says("no compatible worker", "no worker fits", "incompatible"):
		return "no worker can run it: a repetition would be refused the same way"
	case e.EndedBy == ByScheduler && e.says("policy"):
		return "a policy refused it"
	}
	return ""
}

func exhausted(e Ended, allowed int) string {
	if allowed == 0 {
		return "its action allows no repetition (max_retries)"
	}
	return fmt.Sprintf("no repetition is left: it is attempt %d, and %d repetitions are allowed", e.Retries+1, allowed)
}

// lost reports whether the execution was dispatched and never started.
func (e Ended) lost() bool {
	switch e.EndedBy {
	case ByTimeoutMonitor, ByDispatcher, ByDeadLetters:
		return !e.Started
	}
	return false
}

// words are the published ones, in the published order.
var words = []struct {
	reason Reason
	any    []string
}{
	{WorkerUnavailable, []string{"worker queue ttl expired", "worker unavailable"}},
	{QueueTimeout, []string{"timeout", "timed out"}},
	{WorkerHeartbeatStale, []string{"heartbeat", "stale"}},
	{TransientError, []string{"transient", "temporary", "connection"}},
}

func (e Ended) reason() Reason {
	switch {
	case e.Status == attune.StatusAbandoned:
		return WorkerHeartbeatStale
	case e.lost(), !e.Started && e.says("no workers available"):
		return WorkerUnavailable
	case e.Status == attune.StatusTimeout && e.Started:
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
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// delay is the pause before the next repetition after so many. Floating point makes an overflow
// infinite instead of negative; the result is capped before it becomes a duration.
func (c Config) delay(retries int, chance float64) time.Duration {
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
