package placement

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
)

// HeadroomPerWorker is how many dispatches may wait at a worker beyond its capacity, so that it
// never idles while the next message travels. It equals the prefetch of existing workers.
const HeadroomPerWorker = 2

// CapacityDefault is the assumed capacity of workers that announce none; it is the default of
// existing workers.
const CapacityDefault = 10

// Standing says whether a worker may receive work.
type Standing int

// The standings. Executions wait for a deaf, suspect, unhealthy or occupied worker as if it were
// full. From Silent on a worker counts as absent.
const (
	Live     Standing = iota // it may receive work
	Deaf                     // it reports that it does not consume its queue
	Occupied                 // it reports that it is busy
	Suspect                  // its queue is missing or has no consumer
	Unwell                   // it is unhealthy
	Silent                   // its heartbeat is too old
	Cordoned                 // an operator excludes it from new work
	Draining                 // it is about to stop
	Inactive                 // it has stopped
)

// Absent reports whether a worker counts as absent.
func (s Standing) Absent() bool { return s >= Silent }

// Worker is one candidate.
type Worker struct {
	ID       int64
	Name     string
	Host     string // empty if unknown
	Capacity int    // executions it runs at once
	Assigned int    // executions dispatched to it and not yet released
	Standing Standing
	// Note explains the standing to users. It may be empty.
	Note string
	// Seen is when the worker could last receive work as far as is known: its last heartbeat, or
	// when it was cordoned. Until Accepts executions were accepted for it: a silent worker counts
	// as live for a while. Renewed is when it registered again under its name. All are by the
	// database's clock, and zero if unknown.
	Seen, Accepts, Renewed time.Time
	// AttemptFence is true for workers that refuse dispatches of older attempts.
	AttemptFence bool
	// Batch is true for workers that read several dispatches in one message.
	Batch bool
	// Health ranks a degraded worker behind the others; HealthReason explains it.
	Health       Health
	HealthReason string

	// Its announcement, with normalised names of runtimes.
	Runtimes []string
	Versions map[string][]Version
	Labels   map[string]string
	Taints   []Taint
}

// Room is how many more executions the worker may receive now.
func (w *Worker) Room() int {
	if w.Standing != Live {
		return 0
	}
	return w.Most() - w.Assigned
}

// Most is how many executions the worker may have at once.
func (w *Worker) Most() int { return w.Capacity + HeadroomPerWorker }

// Row is a worker's row in the database, with the columns of the statement ReadFleet.
type Row struct {
	ID            int64
	Name, Host    string
	Status        string
	Cordoned      bool
	Draining      bool
	Capabilities  []byte // JSON; nil without an announcement
	Suspect       bool
	SuspectReason string
	// HeartbeatAge is the seconds since the last heartbeat by the database's clock. It is negative
	// for a worker whose clock is ahead, whose heartbeat is fresh, and infinite without a
	// heartbeat.
	HeartbeatAge float64
	Assigned     int32 // negative if not counted
	// Health is the latest verdict on the worker and HealthReason its reason; empty without a
	// recent probe.
	Health, HealthReason string
	// Deactivated is true if the engine marked it inactive, because it was silent.
	Deactivated              bool
	Adopted                  bool      // the schema is that of an existing installation
	Seen, Renewed            time.Time // as in Worker
	CordonReason, CordonedBy string
}

// Worker makes the candidate of a row. A heartbeat older than staleAfter makes a worker silent.
func (r Row) Worker(staleAfter time.Duration) Worker {
	w := Worker{
		ID: r.ID, Name: r.Name, Host: r.Host, Capacity: CapacityDefault, Assigned: int(max(r.Assigned, 0)),
		Standing: r.standing(staleAfter), Health: Health(r.Health), HealthReason: r.HealthReason,
		Seen: r.Seen, Accepts: r.Seen, Renewed: r.Renewed,
	}
	if !r.Seen.IsZero() && (w.Standing == Silent || r.Deactivated) {
		w.Accepts = r.Seen.Add(staleAfter)
	}
	switch w.Standing {
	case Suspect:
		w.Note = r.SuspectReason
	case Unwell:
		w.Note = r.HealthReason
	case Deaf:
		if trouble := r.trouble(); trouble != "" { // it may not have been probed since
			w.Standing, w.Note = Unwell, trouble
		}
	default: // the standing explains itself
	}
	w.announce(r.Capabilities)
	return w
}

// trouble is why the worker cannot start actions, as it reports; empty if it does not.
func (r Row) trouble() string {
	var announced struct {
		Health json.RawMessage `json:"health"`
	}
	if json.Unmarshal(r.Capabilities, &announced) != nil {
		return ""
	}
	report, _ := ParseReport(announced.Health)
	return report.Trouble
}

func (r Row) standing(staleAfter time.Duration) Standing {
	switch {
	case r.Status == lifecycle.WorkerInactive:
		return Inactive
	case r.Cordoned:
		return Cordoned
	case r.Draining:
		return Draining
	case math.IsNaN(r.HeartbeatAge) || r.HeartbeatAge >= staleAfter.Seconds():
		return Silent
	case r.Suspect:
		return Suspect
	case Health(r.Health) == Unhealthy:
		return Unwell
	case r.Status == lifecycle.WorkerError:
		return Deaf
	case r.Status == lifecycle.WorkerBusy:
		return Occupied
	default:
		return Live
	}
}

// announce reads a worker's announcement field by field and skips unreadable fields.
func (w *Worker) announce(capabilities []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(capabilities, &fields) != nil {
		return
	}
	var names []string
	if read(fields["runtimes"], &names) {
		w.Runtimes = NormalizeRuntimes(names)
	}
	var most float64
	if read(fields["max_concurrent_executions"], &most) && most >= 1 && most <= math.MaxInt32 {
		w.Capacity = int(most)
	}
	w.AttemptFence = read(fields["attempt_fence"], &w.AttemptFence) && w.AttemptFence
	w.Batch = read(fields["batch"], &w.Batch) && w.Batch
	w.Versions = versions(fields)
	var labels map[string]json.RawMessage
	if read(fields["labels"], &labels) {
		w.Labels = make(map[string]string, len(labels))
		for key, value := range labels {
			if text, ok := scalar(value); ok {
				w.Labels[key] = text
			}
		}
	}
	w.Taints = taints(fields["taints"])
}

func read(raw json.RawMessage, into any) bool {
	return len(raw) > 0 && json.Unmarshal(raw, into) == nil
}

// scalar is the text of a label: workers also write numbers and booleans.
func scalar(raw json.RawMessage) (string, bool) {
	var value any
	if !read(raw, &value) {
		return "", false
	}
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return string(raw), true
	default:
		return "", false
	}
}

// versions reads the versions of each runtime: a worker's own announcement precedes detected
// interpreters.
func versions(fields map[string]json.RawMessage) map[string][]Version {
	all := map[string][]Version{}
	var said map[string]json.RawMessage
	read(fields["runtime_versions"], &said)
	for name, raw := range said {
		var list []string
		if !read(raw, &list) {
			continue
		}
		for _, text := range list {
			add(all, name, text)
		}
	}
	stated := make(map[string]bool, len(all))
	for name := range all {
		stated[name] = true
	}
	var found []json.RawMessage
	read(fields["detected_interpreters"], &found)
	for _, raw := range found {
		var one struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		}
		if read(raw, &one) && !stated[NormalizeRuntime(one.Name)] {
			add(all, one.Name, one.Version)
		}
	}
	return all
}

func add(all map[string][]Version, name, text string) {
	if v, err := ParseVersion(text); err == nil {
		name = NormalizeRuntime(name)
		all[name] = append(all[name], v)
	}
}

// WellKnown are the runtimes that workers detect: the ref, the name, and the spellings, of which the first is the
// normal one.
var WellKnown = []struct {
	Ref, Name string
	Spellings []string
}{
	{"core.go", "Go", []string{"go", "golang"}},
	{"core.java", "Java", []string{"java", "jdk", "openjdk"}},
	{"core.nodejs", "Node.js", []string{"node", "nodejs", "node.js"}},
	{"core.perl", "Perl", []string{"perl", "perl5"}},
	{"core.python", "Python", []string{"python", "python3"}},
	{"core.r", "R", []string{"r", "rscript"}},
	{"core.ruby", "Ruby", []string{"ruby", "rb"}},
	{"core.shell", "Shell", []string{"shell", "bash", "sh"}},
}

// NormalizeRuntime maps the spellings of a runtime's name to one: node, nodejs and node.js are
// node; bash, sh and shell are shell; and so on. Other names become lower case.
func NormalizeRuntime(name string) string {
	lower := strings.ToLower(strings.TrimSpace(name))
	for _, known := range WellKnown {
		if slices.Contains(known.Spellings, lower) {
			return known.Spellings[0]
		}
	}
	if lower == "builtin" || lower == "standalone" {
		return "native"
	}
	return lower
}

// NormalizeRuntimes maps every name and drops duplicates, keeping order.
func NormalizeRuntimes(names []string) []string {
	out := make([]string, 0, len(names))
	seen := map[string]bool{}
	for _, name := range names {
		n := NormalizeRuntime(name)
		if n != "" && !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
