package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/gate"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// BatchPatience is how long a batch of the engine may be under way before the
// replica counts as stuck.
const BatchPatience = time.Minute

// startPatience is how long a replica may take to connect and to subscribe before
// that is a problem.
const startPatience = 10 * time.Second

// silentReplicas is how long a replica that fell silent is listed by default.
const silentReplicas = 15 * time.Minute

const (
	// ReplicaAlive is how long ago a replica that lives was seen at most.
	ReplicaAlive = 30 * time.Second
	// ReplicaLate is how long a replica has been silent that has missed a report.
	ReplicaLate = 10 * time.Second
)

// replicaBound is how many replicas are read at most.
const replicaBound = 200

// StateVanished is the state of a replica that fell silent without a goodbye.
const StateVanished = "vanished"

// StateDisconnected is the state of a replica without a connection to the broker.
const StateDisconnected = "disconnected"

// Replicas is the list of the engine's replicas, the oldest first.
type Replicas struct {
	Reading
	// Total counts those that are listed, Well those without a problem.
	Total int64     `json:"total"`
	Well  int64     `json:"well"`
	List  []Replica `json:"list"`
	// LastSeen is the newest report of any replica, listed or not; nil without one.
	LastSeen *time.Time `json:"last_seen,omitempty"`
}

// Replica is one running copy of the engine, as it reports itself.
type Replica struct {
	ID      string `json:"id"`
	Host    string `json:"host"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// State is how its connections to the broker are: connecting, connected,
	// blocked, disconnected; or vanished, once another has missed it.
	State    string        `json:"state"`
	Started  time.Time     `json:"started"`
	LastSeen time.Time     `json:"last_seen"`
	Age      time.Duration `json:"age_ns"` // since it was last seen
	// Late is true when it has missed a report.
	Late     bool `json:"late"`
	InFlight int  `json:"in_flight"`
	// Loops are the last ticks by the replica's own clock, which Details.Clock
	// tells. The batches tick when they have done something.
	Loops   map[string]time.Time `json:"loops"`
	Details ReplicaDetails       `json:"details"`
	// Problems says in words what is wrong with it; empty when it is well.
	Problems []string `json:"problems"`
}

// ReplicaDetails is what a replica says about itself besides. What an older one
// does not say is empty.
type ReplicaDetails struct {
	// Clock is the replica's own time at the report.
	Clock time.Time `json:"clock,omitzero"`
	// HTTP is where it listens, empty if nowhere.
	HTTP        string        `json:"http,omitempty"`
	Connections []ReplicaLink `json:"connections,omitempty"`
	// Consumers tells of each queue whether it is subscribed.
	Consumers map[string]bool `json:"consumers,omitempty"`
	// Recreated are queues that were gone and that the replica has declared again.
	Recreated []ReplicaQueue `json:"recreated,omitempty"`
	// Outbox is how many committed messages it holds that are not confirmed.
	Outbox int `json:"outbox"`
	// RoundSince is when the oldest batch under way began, by the replica's clock.
	RoundSince *time.Time `json:"round_since,omitempty"`
	// DatabaseAway is the last time that it could not report, by its clock.
	DatabaseAway *ReplicaOutage `json:"database_away,omitempty"`
	// Installation is what is wrong with the installation, as the replica has met it.
	Installation []gate.Fault           `json:"installation,omitempty"`
	Loops        map[string]ReplicaLoop `json:"loops,omitempty"`
}

// ReplicaLink is one connection of a replica to the broker.
type ReplicaLink struct {
	Purpose string `json:"purpose"` // publish or consume
	Up      bool   `json:"up"`
	// Blocked says that the broker takes no messages.
	Blocked bool      `json:"blocked,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since,omitzero"` // by the replica's clock
}

// ReplicaQueue is a queue that was missing or had crashed.
type ReplicaQueue struct {
	Queue string    `json:"queue"`
	Cause string    `json:"cause"`
	At    time.Time `json:"at"` // it was declared again, by the replica's clock
}

// ReplicaOutage is a time during which something was away.
type ReplicaOutage struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// ReplicaLoop is how a loop does.
type ReplicaLoop struct {
	// Patience is the longest silence of the loop when it works.
	Patience time.Duration `json:"patience_ns"`
	Error    string        `json:"error,omitempty"`
}

// Replicas reads the replicas of the engine. Where the schema has none the list
// is empty.
func (m *Monitor) Replicas(ctx context.Context) (*Replicas, error) {
	r := &Replicas{}
	err := m.Read(ctx, "replicas", &r.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		read, err := m.ReadReplicas(ctx, tx, s, r.At)
		if read != nil {
			read.Reading = r.Reading
			*r = *read
		}
		return err
	})
	return r, err
}

// EngineGone reports whether no replica of the engine is alive. Where the schema has no
// replicas that is unknown, and the answer is false.
func (m *Monitor) EngineGone(ctx context.Context) (gone bool, err error) {
	var r Reading
	err = m.Read(ctx, "replicas", &r, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Shared {
			return nil
		}
		last, err := tx.ViewReplicas(ctx, ReplicaAlive.Seconds())
		gone = err == nil && last.Alive == 0
		return err
	})
	return gone, err
}

// ReadReplicas is nil where the schema has no replicas.
func (m *Monitor) ReadReplicas(ctx context.Context, tx *store.Tx, s Shape, now time.Time) (*Replicas, error) {
	if !s.Shared { // then the schema is older than the table, or not ours
		return nil, nil //nolint:nilnil // there is nothing to read, which is no fault
	}
	rows, err := tx.ListReplicas(ctx, cmp.Or(m.cfg.SilentReplicas, silentReplicas).Seconds(), replicaBound)
	if err != nil {
		return nil, fmt.Errorf("list the replicas of the engine: %w", err)
	}
	r := &Replicas{List: make([]Replica, 0, len(rows)), Total: int64(len(rows))}
	for _, row := range rows {
		one := Replica{
			ID: row.ID.String(), Host: row.Host, Version: row.Version, PID: int(row.Pid), State: row.State,
			Started: row.Started, LastSeen: row.LastSeen, Age: max(time.Duration(row.Age*float64(time.Second)), 0),
			InFlight: int(row.InFlight),
		}
		_ = json.Unmarshal(row.Loops, &one.Loops)     // what cannot be read stays unknown
		_ = json.Unmarshal(row.Details, &one.Details) // as above
		one.judge()
		if len(one.Problems) == 0 {
			r.Well++
		}
		if r.LastSeen == nil || one.LastSeen.After(*r.LastSeen) {
			r.LastSeen = &one.LastSeen
		}
		r.List = append(r.List, one)
	}
	if len(rows) > 0 {
		return r, nil
	}
	last, err := tx.ViewReplicas(ctx, ReplicaAlive.Seconds())
	if err != nil {
		return nil, fmt.Errorf("find the last report of a replica: %w", err)
	}
	if last.Silent >= 0 {
		r.LastSeen = new(now.Add(-Seconds(last.Silent)))
	}
	return r, nil
}

// judge says what is wrong.
func (r *Replica) judge() {
	r.Late = r.Age > ReplicaLate
	r.Problems = []string{}
	if r.Late {
		r.Problems = append(r.Problems, "silent for "+phrase.Span(r.Age))
	}
	if !r.Alive() {
		return // what it said last is worth nothing any more
	}
	for _, fault := range r.Details.Installation {
		r.Problems = append(r.Problems, "installation at fault: "+fault.String())
	}
	r.Problems = append(r.Problems, r.Troubles()...)
	for _, name := range r.SilentLoops() {
		r.Problems = append(r.Problems, fmt.Sprintf("loop %s is silent for %s", name, phrase.Span(r.Silence(name))))
	}
}

// Alive reports whether it has reported itself within the last 30 seconds.
func (r *Replica) Alive() bool { return r.State != StateVanished && r.Age <= ReplicaAlive }

// Starting reports whether it has just started: the broker has not counted its consumers,
// and its loops may not have reported yet.
func (r *Replica) Starting(at time.Time) bool {
	return r.Alive() && at.Sub(r.Started) < startGrace && !r.Details.Clock.IsZero()
}

// recreatedFor is for how long a queue that was gone is told of.
const recreatedFor = 10 * time.Minute

// Troubles is what is wrong with its connections and its batch.
func (r *Replica) Troubles() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	now := r.Details.Clock.Add(r.Age)
	starting := r.LastSeen.Sub(r.Started) < startPatience
	for _, link := range r.Details.Connections {
		switch {
		case link.Blocked:
			add("the broker blocks it since %s (%s)", phrase.Span(now.Sub(link.Since)), link.Reason)
		case !link.Up && !starting:
			add("no %s connection to the broker since %s", link.Purpose, phrase.Span(now.Sub(link.Since)))
		}
	}
	held := len(r.Details.Installation) > 0 // which is told by itself
	if silent := r.unsubscribed(); len(silent) > 0 && r.State == "connected" && !starting && !held {
		add("does not consume %s", strings.Join(silent, ", "))
	}
	for _, one := range r.Details.Recreated {
		if age := now.Sub(one.At); age < recreatedFor {
			add("queue %s was gone and was declared again %s ago (%s); its messages are sent again from the database",
				one.Queue, phrase.Span(age), one.Cause)
		}
	}
	if since := r.Details.RoundSince; since != nil && now.Sub(*since) > BatchPatience {
		add("its batch is under way for %s", phrase.Span(now.Sub(*since)))
	}
	return list
}

// SilentLoops names the loops that have been silent for longer than they may.
func (r *Replica) SilentLoops() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Details.Loops)) {
		if r.Silence(name) > r.Details.Loops[name].Patience {
			names = append(names, name)
		}
	}
	return names
}

func (r *Replica) unsubscribed() []string {
	var queues []string
	for _, queue := range slices.Sorted(maps.Keys(r.Details.Consumers)) {
		if !r.Details.Consumers[queue] {
			queues = append(queues, queue)
		}
	}
	return queues
}

// Silence is how long a loop has not ticked; a loop that never has is silent
// since the replica began.
func (r *Replica) Silence(loop string) time.Duration {
	tick, ok := r.Loops[loop]
	if !ok {
		return max(r.LastSeen.Sub(r.Started), 0) + r.Age
	}
	return max(r.Details.Clock.Sub(tick), 0) + r.Age
}

// OldestTick is the loop that has been silent for the longest part of what it
// may, and how long; empty for a replica that does not tell.
func (r *Replica) OldestTick() (loop string, silence time.Duration) {
	worst := -1.0
	for _, name := range slices.Sorted(maps.Keys(r.Details.Loops)) {
		of := r.Silence(name)
		if share := float64(of) / float64(max(r.Details.Loops[name].Patience, 1)); share > worst {
			worst, loop, silence = share, name, of
		}
	}
	return loop, silence
}

// Problem is the first problem of the replica, empty when it is well.
func (r *Replica) Problem() string {
	if len(r.Problems) == 0 {
		return ""
	}
	return r.Problems[0]
}

// Short is the beginning of its id, as the replica's own log has it.
func (r *Replica) Short() string { return r.ID[:min(len(r.ID), 8)] }

// Oldest is the longest time since a replica was seen.
func (r *Replicas) Oldest() time.Duration {
	var oldest time.Duration
	for _, one := range r.List {
		oldest = max(oldest, one.Age)
	}
	return oldest
}
