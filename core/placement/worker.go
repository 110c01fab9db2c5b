package placement

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// HeadroomPerWorker is how many dispatches may lie unstarted at a worker
// beyond the executions it runs at once, so that it never idles while the
// next message travels. It equals what existing workers prefetch.
const HeadroomPerWorker = 2

// CapacityDefault is assumed of workers that do not say how many executions
// they run at once; it is the default of existing workers.
const CapacityDefault = 10

// Standing says whether a worker may be given something.
type Standing int

// The standings. A worker is waited for while it is deaf, suspected, unhealthy or
// calls itself busy, as if it were full. From Silent on it counts as not there.
const (
	Live     Standing = iota // it may be given something
	Deaf                     // it says that the broker delivers nothing to it
	Occupied                 // it says that it is busy
	Suspect                  // its queue did not take what was handed to it, or nobody consumes it
	Unwell                   // it is unhealthy
	Silent                   // its heartbeat is too old
	Cordoned                 // an operator keeps work from it
	Draining                 // it is about to stop
	Inactive                 // it has said goodbye
)

// Absent reports whether a worker counts as not there.
func (s Standing) Absent() bool { return s >= Silent }

// Worker is one candidate.
type Worker struct {
	ID       int64
	Name     string
	Host     string // empty if it is not known
	Capacity int    // executions it runs at once
	Assigned int    // executions handed to it and not yet released
	Standing Standing
	// Note says more about the standing, for people. It may be empty.
	Note string
	// AttemptFence is true for workers that refuse a dispatch with an older
	// attempt number.
	AttemptFence bool
	// Batch is true for workers that read several dispatches in one message.
	Batch bool
	// Health puts a degraded worker behind the others; HealthReason says why.
	Health       Health
	HealthReason string

	// What it announced, with normalised names of runtimes.
	Runtimes []string
	Versions map[string][]Version
	Labels   map[string]string
	Taints   []Taint
}

// Room is how many more executions may be handed to the worker now.
func (w *Worker) Room() int {
	if w.Standing != Live {
		return 0
	}
	return w.Most() - w.Assigned
}

// Most is how many executions the worker may have at once.
func (w *Worker) Most() int { return w.Capacity + HeadroomPerWorker }

// Row is a worker as its row in the database says. Every field but Capabilities
// is what the column of that name holds.
type Row struct {
	ID            int64
	Name, Host    string
	Status        string
	Cordoned      bool
	Draining      bool
	Suspect       bool
	SuspectReason string
	// HeartbeatAge is the seconds since the last heartbeat by the database's
	// clock. It is negative for a worker whose clock is ahead, whose heartbeat
	// is fresh, and infinite if there never was one.
	HeartbeatAge float64
	// Health is how the worker was judged lately and HealthReason why; empty if
	// nobody has looked lately.
	Health, HealthReason string
	Capabilities         []byte // JSON; nil when nothing was announced
	Assigned             int    // negative when nobody counts
}

// Worker makes the candidate of a row. A heartbeat older than staleAfter makes
// a worker silent.
func (r Row) Worker(staleAfter time.Duration) Worker {
	w := Worker{
		ID: r.ID, Name: r.Name, Host: r.Host, Capacity: CapacityDefault, Assigned: max(r.Assigned, 0),
		Standing: r.standing(staleAfter), Health: Health(r.Health), HealthReason: r.HealthReason,
	}
	switch w.Standing {
	case Suspect:
		w.Note = r.SuspectReason
	case Unwell:
		w.Note = r.HealthReason
	default: // it says enough
	}
	w.announce(r.Capabilities)
	return w
}

func (r Row) standing(staleAfter time.Duration) Standing {
	switch {
	case r.Status == "inactive":
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
	case r.Status == "error":
		return Deaf
	case r.Status == "busy":
		return Occupied
	default:
		return Live
	}
}

// announce reads what a worker says of itself, field by field: one that cannot
// be read is as if it were not there.
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
	if !read(fields["attempt_fence"], &w.AttemptFence) {
		w.AttemptFence = false
	}
	if !read(fields["batch"], &w.Batch) {
		w.Batch = false
	}
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

// scalar is the text of a label: workers write numbers and truth values too.
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

// versions reads which versions of each runtime a worker has: what it says of a
// runtime itself goes before what it has found by looking for interpreters.
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

// Effect is what a taint does to executions that do not tolerate it.
type Effect string

// The effects.
const (
	NoSchedule       Effect = "no_schedule"        // they are not placed there
	PreferNoSchedule Effect = "prefer_no_schedule" // they are placed elsewhere if there is room
)

// Taint keeps executions away from a worker.
type Taint struct {
	Key    string
	Value  string // empty if it has none
	Effect Effect
}

// String writes a taint as key=value:effect.
func (t Taint) String() string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + string(t.Effect)
}

// unreadable stands for taints that cannot be read. Whatever they say, it is
// safer to keep away from the worker.
const unreadable = "(unreadable)"

func taints(raw json.RawMessage) []Taint {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var rows []json.RawMessage
	if !read(raw, &rows) {
		return []Taint{{Key: unreadable, Effect: NoSchedule}}
	}
	list := make([]Taint, len(rows))
	for i, row := range rows {
		list[i] = taint(row)
	}
	return list
}

func taint(row json.RawMessage) Taint {
	var one struct {
		Key    string          `json:"key"`
		Value  json.RawMessage `json:"value"`
		Effect string          `json:"effect"`
	}
	if !read(row, &one) || strings.TrimSpace(one.Key) == "" {
		return Taint{Key: unreadable, Effect: NoSchedule}
	}
	t := Taint{Key: one.Key, Effect: NoSchedule}
	t.Value, _ = scalar(one.Value)
	if Effect(one.Effect) == PreferNoSchedule {
		t.Effect = PreferNoSchedule
	}
	return t
}
