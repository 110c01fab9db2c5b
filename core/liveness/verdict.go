package liveness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// The verdicts on a worker, the one that keeps most from it last.
const (
	verdictFresh    = "fresh"
	verdictSuspect  = "suspect"
	verdictCordoned = "cordoned"
	verdictDraining = "draining"
	verdictDead     = "dead"
)

// unreachable is the reason of a verdict that stands because the broker could not
// be asked.
const unreachable = "broker unreachable"

// deafProbes is how many looks in a row must find no queue, or no consumer of it,
// before a worker is suspected: workers register before they declare and consume.
const deafProbes = 2

// queueLook is what was seen of a worker's queue.
type queueLook struct {
	asked bool
	state broker.QueueState
	took  time.Duration
	err   error
}

// seen is everything that was seen of a worker.
type seen struct {
	store.FindProbedRow
	stale    time.Duration
	queue    queueLook
	endpoint *endpointLook // nil when it offers none
	oldest   *time.Time
	endings  *store.FindEndingsRow // what has ended on it lately, as far as that is known
	// byFailures says that failures of what it runs speak against it.
	byFailures bool
}

// finding is what follows from it.
type finding struct {
	worker       int64
	name         string
	verdict      string
	reason       string
	failures     int32
	suspect      string // the reason to suspect it now; empty if there is none
	failed       string // why the health check failed; empty if it did not
	health       placement.Health
	healthReason string
	skew         float64 // NaN if nothing is known
	queue        queueLook
	details      map[string]any
}

// judge draws the conclusions. It is pure.
func judge(s seen, limits placement.Limits, valid time.Duration) finding {
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
	f.health, f.healthReason = limits.Judge(signs)
	if s.byFailures && !numbers && s.endings != nil {
		if health, reason := limits.Judge(s.ended()); health.Worse(f.health) {
			f.health, f.healthReason = health, reason
		}
	}
	if s.queue.asked && s.queue.err != nil && f.health == placement.HealthUnknown && s.OldHealth != "" {
		f.health, f.healthReason = placement.Health(s.OldHealth), s.OldHealthReason // nothing new is known
	}
	if f.verdict == verdictDead { // how well it was is past
		f.health, f.healthReason = placement.HealthUnknown, ""
	}
	f.details = s.details(fingerprint, valid)
	return f
}

// ended is what is known of a worker that does not report it.
func (s seen) ended() placement.Signs {
	e := s.endings
	return placement.Signs{
		Numbers: true, Ready: -1, Unchanged: time.Duration(max(e.Idle, 0) * float64(time.Second)),
		Report: placement.Report{InARow: int(e.InARow), Total: int(e.Total), Failed: int(e.Failed), Actions: int(e.Actions), Action: e.Action},
	}
}

// verdict puts the row, the heartbeat and the queue together; the strictest wins.
func (s seen) verdict(f *finding) (verdict, reason string) {
	age := s.HeartbeatAge
	switch {
	case math.IsInf(age, 1) || math.IsNaN(age):
		f.failures = 0
		return verdictDead, "never sent a heartbeat"
	case age >= s.stale.Seconds():
		f.failures = 0
		if s.Status == string(store.WorkerStatusEnumInactive) && !s.Deactivated {
			return verdictDead, "stopped by itself, last heartbeat " + ago(age)
		}
		return verdictDead, "last heartbeat " + ago(age)
	case s.Draining:
		return verdictDraining, "takes no more work and ends what it has"
	case s.Status == string(store.WorkerStatusEnumInactive) && s.Deactivated:
		return verdictSuspect, "beats again and is not yet marked active"
	case s.Status == string(store.WorkerStatusEnumInactive):
		return verdictDraining, "has marked itself inactive"
	}
	bad := s.deaf(f)
	switch {
	case s.Cordoned:
		f.suspect = ""
		return verdictCordoned, cmp.Or(s.CordonReason, "cordoned")
	case s.Suspect:
		return verdictSuspect, cmp.Or(s.SuspectReason, bad, "suspected")
	case f.suspect != "":
		return verdictSuspect, f.suspect
	case s.queue.asked && s.queue.err != nil:
		return cmp.Or(keep(s.Verdict), verdictFresh), unreachable
	case s.Status == string(store.WorkerStatusEnumError):
		return verdictSuspect, "says that it is cut off from the broker"
	case bad != "":
		return verdictFresh, bad + ", which may be because it has just started"
	case s.endpoint != nil && s.endpoint.err != "":
		return verdictFresh, "its health endpoint " + s.endpoint.err
	default:
		return verdictFresh, ""
	}
}

// keep is the old verdict if the broker's absence leaves it standing: what the
// row and the heartbeats say has been looked at anew.
func keep(old string) string {
	if old == verdictSuspect || old == verdictFresh {
		return old
	}
	return ""
}

// deaf looks at the queue of a worker that beats: what is bad about it, whether
// that makes it suspect, and for how many looks it has been so.
func (s seen) deaf(f *finding) string {
	if !s.queue.asked || s.queue.err != nil {
		return ""
	}
	var bad string
	switch {
	case !s.queue.state.Exists:
		bad = "its queue does not exist"
	case s.queue.state.Consumers == 0:
		bad = "nobody consumes its queue"
	default:
		f.failures = 0
		return ""
	}
	if f.failures++; f.failures >= deafProbes {
		f.suspect, f.failed = bad, bad
	}
	return bad
}

// poor is what its endpoint says against it. An endpoint that cannot be reached
// says nothing: the way to it may be what is broken.
func (s seen) poor() string {
	if s.endpoint == nil || !s.endpoint.answered || s.endpoint.err == "" {
		return ""
	}
	return "its health endpoint " + s.endpoint.err
}

func ago(age float64) string {
	return time.Duration(math.Round(age)*float64(time.Second)).String() + " ago"
}

func (s seen) details(fingerprint string, valid time.Duration) map[string]any {
	d := map[string]any{"valid_seconds": valid.Seconds()}
	if fingerprint != "" {
		d["report"] = fingerprint
	}
	if s.queue.asked && s.queue.err == nil {
		d["rtt_ms"] = milliseconds(s.queue.took)
		d["queue_exists"], d["consumers"], d["ready"] = s.queue.state.Exists, s.queue.state.Consumers, s.queue.state.Ready
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

// params makes one statement of many findings.
func params(list []finding) (store.RecordProbesParams, error) {
	var p store.RecordProbesParams
	for _, f := range list {
		details, err := json.Marshal(f.details)
		if err != nil {
			return p, fmt.Errorf("write down what was seen of worker %d: %w", f.worker, err)
		}
		p.Workers, p.Verdicts, p.Reasons = append(p.Workers, f.worker), append(p.Verdicts, f.verdict), append(p.Reasons, f.reason)
		p.Healths, p.HealthReasons = append(p.Healths, string(f.health)), append(p.HealthReasons, f.healthReason)
		p.Details, p.Failures = append(p.Details, details), append(p.Failures, f.failures)
	}
	return p, nil
}
