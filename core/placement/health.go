package placement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Health is the health of a worker.
type Health string

// The healths. An unhealthy worker receives nothing; a degraded one receives work for which healthy
// ones have no capacity.
const (
	Healthy       Health = "healthy"
	Degraded      Health = "degraded"
	Unhealthy     Health = "unhealthy"
	HealthUnknown Health = "unknown" // counts as healthy
)

// Limits of a health verdict.
const (
	// RateSample is the minimum number of executions for a share of failures.
	RateSample = 10
	// TrialAfter is how long failures keep a worker unhealthy after its last end of an execution.
	// Then it is degraded, so that it gets work and can prove its recovery.
	TrialAfter = 5 * time.Minute
)

// Limits says when a worker is degraded or unhealthy.
type Limits struct {
	DegradedFailures, UnhealthyFailures int     // in a row
	DegradedQueue, UnhealthyQueue       int     // executions waiting in its queue
	DegradedRate, UnhealthyRate         float64 // share of its executions that failed, 0 to 1
}

// DocumentedLimits are the documented limits.
func DocumentedLimits() Limits {
	return Limits{
		DegradedFailures: 3, UnhealthyFailures: 10, DegradedQueue: 50, UnhealthyQueue: 100,
		DegradedRate: 0.3, UnhealthyRate: 0.7,
	}
}

// Report is a worker's report about its health in capabilities.health. Total, Failed and the
// average cover a window of the worker's choice.
type Report struct {
	Status     Health  `json:"status"`
	LastCheck  string  `json:"last_check"`
	InARow     int     `json:"consecutive_failures"`
	Total      int     `json:"total_executions"`
	Failed     int     `json:"failed_executions"`
	AverageMS  float64 `json:"average_execution_time_ms"`
	QueueDepth int     `json:"queue_depth"`
	// Actions is the number of different failed actions; 0 means unknown. Failures of a single
	// action are more likely the action's fault.
	Actions int `json:"failed_actions,omitempty"`
	// Action is that single action, if known.
	Action string `json:"failed_action,omitempty"`
	// Ended counts the ends since the worker's start; 0 means unknown. It distinguishes a new end
	// from an old one that leaves the window.
	Ended int `json:"ended,omitempty"`
	// Trouble is why the worker cannot start actions; empty if it can.
	Trouble string `json:"trouble,omitempty"`
}

// Ends identifies the worker's set of ends: while it stays the same, nothing has ended.
func (r Report) Ends() string {
	if r.Ended > 0 {
		return strconv.Itoa(r.Ended)
	}
	return fmt.Sprintf("%d/%d/%d", r.InARow, r.Failed, r.Total)
}

// ParseReport reads a report field by field and skips unreadable fields. numbers is false if it
// contains no number for a verdict.
func ParseReport(raw []byte) (r Report, numbers bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return Report{}, false
	}
	read(fields["status"], &r.Status)
	read(fields["last_check"], &r.LastCheck)
	read(fields["failed_action"], &r.Action)
	read(fields["trouble"], &r.Trouble)
	if !read(fields["average_execution_time_ms"], &r.AverageMS) {
		r.AverageMS = 0
	}
	for name, into := range map[string]*int{
		"consecutive_failures": &r.InARow, "total_executions": &r.Total, "failed_executions": &r.Failed,
		"queue_depth": &r.QueueDepth, "failed_actions": &r.Actions, "ended": &r.Ended,
	} {
		var n float64
		if read(fields[name], &n) && n >= 0 && n <= math.MaxInt32 {
			*into, numbers = int(n), true
		}
	}
	return r, numbers
}

// Signs are the inputs of a worker's health.
type Signs struct {
	Report Report
	// Numbers is true if the report contains numbers. Without them its status is accepted.
	Numbers bool
	// Ready is the number of messages in the worker's queue; negative if unknown.
	Ready int
	// Unchanged is the time since the last end on the worker.
	Unchanged time.Duration
	// Poor is other evidence against the worker, which makes it degraded at most.
	Poor string
}

// Evaluate returns a worker's health and the reason, which is empty for a healthy one. The worst
// sign counts.
func (l Limits) Evaluate(s Signs) (Health, string) {
	health, reason := l.byQueue(s)
	if h, why := l.byFailures(s); h.Worse(health) {
		health, reason = h, why
	}
	if h, why := l.byShare(s); h.Worse(health) {
		health, reason = h, why
	}
	if h := s.Report.Status; !s.Numbers && h.Worse(health) {
		health, reason = h, "it says so itself"
	}
	if s.Report.Trouble != "" {
		health, reason = Unhealthy, s.Report.Trouble
	}
	if s.Poor != "" && Degraded.Worse(health) {
		health, reason = Degraded, s.Poor
	}
	return health, reason
}

// Worse reports whether h is worse; an unknown value is not.
func (h Health) Worse(than Health) bool { return h.rank() > than.rank() }

func (h Health) rank() int {
	switch h {
	case Unhealthy:
		return 3
	case Degraded:
		return 2
	case Healthy:
		return 1
	default:
		return 0
	}
}

func (l Limits) byQueue(s Signs) (Health, string) {
	waiting := max(s.Ready, 0)
	if s.Numbers {
		waiting = max(waiting, s.Report.QueueDepth)
	}
	reason := fmt.Sprintf("%d wait in its queue", waiting)
	switch {
	case waiting >= l.UnhealthyQueue:
		return Unhealthy, reason
	case waiting >= l.DegradedQueue:
		return Degraded, reason
	case s.Ready < 0 && !s.Numbers:
		return HealthUnknown, ""
	default:
		return Healthy, ""
	}
}

func (l Limits) byFailures(s Signs) (Health, string) {
	n := s.Report.InARow
	return s.failures(n >= l.UnhealthyFailures, n >= l.DegradedFailures, fmt.Sprintf("%d failures in a row", n))
}

func (l Limits) byShare(s Signs) (Health, string) {
	if s.Report.Total < RateSample || s.Report.Failed <= 0 {
		return HealthUnknown, ""
	}
	share := float64(s.Report.Failed) / float64(s.Report.Total)
	return s.failures(share >= l.UnhealthyRate, share >= l.DegradedRate,
		fmt.Sprintf("%d of %d executions failed", s.Report.Failed, s.Report.Total))
}

// failures judges failures that reach the limits. Those of a single action degrade the worker at most. Others make it
// unhealthy until nothing has ended for TrialAfter.
func (s Signs) failures(unhealthy, degraded bool, reason string) (Health, string) {
	reason += s.Report.allOf()
	switch {
	case unhealthy && s.Report.Actions != 1 && s.Unchanged < TrialAfter:
		return Unhealthy, reason
	case unhealthy && s.Report.Actions != 1:
		return Degraded, reason + ", and none since: on trial"
	case unhealthy, degraded:
		return Degraded, reason
	default:
		return HealthUnknown, ""
	}
}

// allOf names the action of all failures; empty for several or unknown ones.
func (r Report) allOf() string {
	if r.Actions != 1 {
		return ""
	}
	return ", all of " + cmp.Or(r.Action, "one action")
}
