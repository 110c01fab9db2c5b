package liveness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// The verdicts on a worker, in order of strictness.
const (
	verdictFresh    = "fresh"
	verdictSuspect  = "suspect"
	verdictCordoned = "cordoned"
	verdictDraining = "draining"
	verdictDead     = "dead"
)

// unreachable is the reason of a verdict that is kept because the broker did not answer.
const unreachable = "broker unreachable"

// deafProbes is how many consecutive probes must find no queue or no consumer before a worker
// becomes suspect: workers register before they declare and consume.
const deafProbes = 2

type queueResult struct {
	asked bool
	state broker.QueueState
	took  time.Duration
	err   error
}

// observation is everything that a probe read about a worker.
type observation struct {
	store.FindProbedRow
	stale    time.Duration
	queue    queueResult
	endpoint *endpointResult // nil without an endpoint
	oldest   *time.Time
	endings  *store.FindEndingsRow // its recently ended executions, as far as known
	// byFailures derives its health from failures of its executions.
	byFailures bool
}

// finding is the conclusion of a probe.
type finding struct {
	worker       int64
	name         string
	verdict      string
	reason       string
	failures     int32
	suspect      string // the reason to suspect it now; empty without one
	failed       string // why the health check failed; empty if it passed
	health       placement.Health
	healthReason string
	skew         float64 // NaN if unknown
	queue        queueResult
	details      map[string]any
}

// evaluate derives the finding. It is pure.
func evaluate(s observation, limits placement.Limits, valid time.Duration) finding {
	f := finding{worker: s.ID, name: s.Name, queue: s.queue, skew: s.Skew, failures: s.Failures}
	f.verdict, f.reason = s.verdict(&f)
	if f.failed == "" && s.endpoint != nil && s.endpoint.err != "" && f.verdict != verdictDraining {
		f.failed = "its health endpoint " + s.endpoint.err
	}
	report, numbers := placement.ParseReport(s.Health)
	signs := placement.Signs{Report: report, Numbers: numbers, Ready: -1, Poor: s.poor()}
	if s.queue.asked && s.queue.err == nil {
		signs.Ready = s.queue.state.Ready
	}
	fingerprint := ""
	if numbers {
		fingerprint = report.Ends()
		if fingerprint == s.Report {
			signs.Unchanged = time.Duration(s.Unchanged * float64(time.Second))
		}
	}
	if !s.byFailures {
		signs.Report.InARow, signs.Report.Total, signs.Report.Failed = 0, 0, 0
	}
	f.health, f.healthReason = limits.Evaluate(signs)
	if s.byFailures && !numbers && s.endings != nil {
		if health, reason := limits.Evaluate(s.ended()); health.Worse(f.health) {
			f.health, f.healthReason = health, reason
		}
	}
	if s.queue.asked && s.queue.err != nil && f.health == placement.HealthUnknown && s.OldHealth != "" {
		f.health, f.healthReason = placement.Health(s.OldHealth), s.OldHealthReason // no new information
	}
	if f.verdict == verdictDead { // its health no longer matters
		f.health, f.healthReason = placement.HealthUnknown, ""
	}
	f.details = s.details(fingerprint, valid)
	return f
}

// ended derives the signs of a worker that does not report them.
func (s observation) ended() placement.Signs {
	e := s.endings
	return placement.Signs{
		Numbers: true, Ready: -1, Unchanged: time.Duration(max(e.Idle, 0) * float64(time.Second)),
		Report: placement.Report{
			InARow: int(e.InARow), Total: int(e.Total), Failed: int(e.Failed),
			Actions: int(e.Actions), Action: e.Action,
		},
	}
}

// verdict combines the row, the heartbeat and the queue; the strictest wins.
func (s observation) verdict(f *finding) (verdict, reason string) {
	age := s.HeartbeatAge
	switch {
	case math.IsInf(age, 1) || math.IsNaN(age):
		f.failures = 0
		return verdictDead, "never sent a heartbeat"
	case age >= s.stale.Seconds():
		f.failures = 0
		if s.Status == lifecycle.WorkerInactive && !s.Deactivated {
			return verdictDead, "stopped by itself, last heartbeat " + ago(age)
		}
		return verdictDead, "last heartbeat " + ago(age)
	case s.Draining:
		return verdictDraining, "takes no more work and ends what it has"
	case s.Status == lifecycle.WorkerInactive && s.Deactivated:
		return verdictSuspect, "beats again and is not yet marked active"
	case s.Status == lifecycle.WorkerInactive:
		return verdictDraining, "has marked itself inactive"
	}
	report, _ := placement.ParseReport(s.Health)
	bad := ""
	if report.Trouble == "" { // else it has closed its consumer itself
		bad = s.deaf(f)
	}
	switch {
	case s.Cordoned:
		f.suspect = ""
		return verdictCordoned, cmp.Or(s.CordonReason, "cordoned")
	case s.Suspect:
		return verdictSuspect, cmp.Or(s.SuspectReason, bad, "suspected")
	case f.suspect != "":
		return verdictSuspect, f.suspect
	case s.queue.asked && s.queue.err != nil && s.Verdict == verdictSuspect:
		return verdictSuspect, unreachable // the old verdict stays without the broker
	case s.queue.asked && s.queue.err != nil:
		return verdictFresh, unreachable
	case s.Status == lifecycle.WorkerError:
		return verdictSuspect, cmp.Or(report.Trouble, "says that it is cut off from the broker")
	case bad != "":
		return verdictFresh, bad + ", which may be because it has just started"
	case s.endpoint != nil && s.endpoint.err != "":
		return verdictFresh, "its health endpoint " + s.endpoint.err
	default:
		return verdictFresh, ""
	}
}

// deaf checks the queue of a live worker: what is wrong with it, whether the worker becomes
// suspect, and for how many probes this has lasted.
func (s observation) deaf(f *finding) string {
	if !s.queue.asked || s.queue.err != nil {
		return ""
	}
	var bad string
	switch {
	case !s.queue.state.Exists:
		bad = "its queue does not exist"
	case s.queue.state.Consumers == 0:
		bad = "its queue has no consumer"
	default:
		f.failures = 0
		return ""
	}
	if f.failures++; f.failures >= deafProbes {
		f.suspect, f.failed = bad, bad
	}
	return bad
}

// poor is what the endpoint reports against the worker. An unreachable endpoint proves nothing: the
// network to it may be broken.
func (s observation) poor() string {
	if s.endpoint == nil || !s.endpoint.answered || s.endpoint.err == "" {
		return ""
	}
	return "its health endpoint " + s.endpoint.err
}

func ago(age float64) string {
	return time.Duration(math.Round(age)*float64(time.Second)).String() + " ago"
}

func (s observation) details(fingerprint string, valid time.Duration) map[string]any {
	d := map[string]any{"valid_seconds": valid.Seconds()}
	if fingerprint != "" {
		d["report"] = fingerprint
	}
	if s.queue.asked && s.queue.err == nil {
		d["rtt_ms"] = milliseconds(s.queue.took)
		d["queue_exists"], d["consumers"], d["ready"] = s.queue.state.Exists, s.queue.state.Consumers,
			s.queue.state.Ready
	}
	if s.oldest != nil {
		d["oldest"] = s.oldest
	}
	if !math.IsNaN(s.Skew) && !math.IsInf(s.Skew, 0) {
		d["skew_seconds"] = s.Skew
	}
	if s.endpoint != nil {
		d["endpoint_ms"] = milliseconds(s.endpoint.took)
		if s.endpoint.err != "" {
			d["endpoint_error"] = s.endpoint.err
		}
	}
	return d
}

func milliseconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e3 }

// params turns findings into the parameters of one statement.
func params(list []finding) (store.RecordProbesParams, error) {
	var p store.RecordProbesParams
	for _, f := range list {
		details, err := json.Marshal(f.details)
		if err != nil {
			return p, fmt.Errorf("encode the findings about worker %d: %w", f.worker, err)
		}
		p.Workers, p.Verdicts, p.Reasons = append(p.Workers, f.worker), append(p.Verdicts, f.verdict), append(p.Reasons,
			f.reason)
		p.Healths, p.HealthReasons = append(p.Healths, string(f.health)), append(p.HealthReasons, f.healthReason)
		p.Details, p.Failures = append(p.Details, details), append(p.Failures, f.failures)
	}
	return p, nil
}
