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

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// BatchTimeout is the duration of a batch from which a replica counts as stuck.
const BatchTimeout = time.Minute

// startTimeout is how long a replica may take to connect and subscribe.
const startTimeout = 10 * time.Second

// silentReplicas is how long a silent replica is listed by default.
const silentReplicas = 15 * time.Minute

const (
	// ReplicaAlive is the age of its last report up to which a replica counts as alive.
	ReplicaAlive = 30 * time.Second
	// ReplicaLate is the age of a report from which the next one is missing.
	ReplicaLate = 10 * time.Second
)

// replicaBound bounds the list of replicas.
const replicaBound = 200

// StateVanished is the state of a replica that became silent without stopping.
const StateVanished = "vanished"

// StateDisconnected is the state of a broker connection that was lost.
const StateDisconnected = "disconnected"

// Replicas is the list of replicas, the oldest first.
type Replicas struct {
	Reading
	// Total counts the listed replicas, Well those without a problem.
	Total int64     `json:"total"`
	Well  int64     `json:"well"`
	List  []Replica `json:"list"`
	// LastSeen is the newest report of any replica, listed or not.
	LastSeen *time.Time `json:"last_seen,omitempty"`
	// ReadOnly is why no replica reports: the database takes no writes.
	ReadOnly *phrase.Trouble `json:"read_only,omitempty"`
}

// Replica is one running engine, as it reports itself.
type Replica struct {
	ID      string `json:"id"`
	Host    string `json:"host"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// State is connecting, connected, blocked or disconnected; or vanished, set by another replica.
	State    string        `json:"state"`
	Started  time.Time     `json:"started"`
	LastSeen time.Time     `json:"last_seen"`
	Age      time.Duration `json:"age_ns"` // since the last report
	// Late is true when a report is missing.
	Late     bool `json:"late"`
	InFlight int  `json:"in_flight"`
	// Loops are the last successful ticks by the replica's clock (Details.Clock). Batches tick only after work.
	Loops   map[string]time.Time `json:"loops"`
	Details ReplicaDetails       `json:"details"`
	// Problems are sentences; empty for a healthy replica.
	Problems []string `json:"problems"`
}

// ReplicaDetails is a replica's report about itself. An older version leaves fields empty.
type ReplicaDetails struct {
	// Clock is the replica's time of the report.
	Clock time.Time `json:"clock,omitzero"`
	// HTTP is its listen address, if any.
	HTTP        string        `json:"http,omitempty"`
	Connections []ReplicaLink `json:"connections,omitempty"`
	// Consumers says for each queue whether it is subscribed.
	Consumers map[string]bool `json:"consumers,omitempty"`
	// Recreated are missing queues that the replica declared again.
	Recreated []ReplicaQueue `json:"recreated,omitempty"`
	// Outbox counts its committed messages without a confirmation.
	Outbox int `json:"outbox"`
	// RoundSince is the start of the oldest running batch, by the replica's clock.
	RoundSince *time.Time `json:"round_since,omitempty"`
	// DatabaseAway is the last outage of the database, by the replica's clock.
	DatabaseAway *ReplicaOutage `json:"database_away,omitempty"`
	// Installation are the faults of the installation that the replica met.
	Installation []batch.Fault          `json:"installation,omitempty"`
	Loops        map[string]ReplicaLoop `json:"loops,omitempty"`
	// Routes is its last probe of the routes of dead letters.
	Routes *broker.RouteReport `json:"routes,omitempty"`
}

// ReplicaLink is a connection of a replica to the broker.
type ReplicaLink struct {
	Purpose string `json:"purpose"` // publish or consume
	Up      bool   `json:"up"`
	// Blocked says that the broker accepts no messages.
	Blocked bool      `json:"blocked,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since,omitzero"` // by the replica's clock
}

// ReplicaQueue is a queue that was missing or had crashed.
type ReplicaQueue struct {
	Queue string    `json:"queue"`
	Cause string    `json:"cause"`
	At    time.Time `json:"at"` // when it was declared again, by the replica's clock
}

// ReplicaOutage is the time of an outage.
type ReplicaOutage struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// ReplicaLoop is the state of a loop.
type ReplicaLoop struct {
	// Timeout is the longest time without a success of a working loop; it is another one while Error is set.
	Timeout time.Duration `json:"patience_ns"`
	Error   string        `json:"error,omitempty"`
}

// Replicas reads the replicas. The list is empty where the schema has none.
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

// EngineGone reports that no replica is alive; false where the schema has no replicas.
func (m *Monitor) EngineGone(ctx context.Context) (gone bool, err error) {
	var r Reading
	err = m.Read(ctx, "replicas", &r, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
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
	if !s.Ours { // the schema is older than the table, or not ours
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
			Started: row.Started, LastSeen: row.LastSeen, Age: Seconds(row.Age),
			InFlight: int(row.InFlight),
		}
		_ = json.Unmarshal(row.Loops, &one.Loops) // unreadable reports stay unknown
		_ = json.Unmarshal(row.Details, &one.Details)
		one.assess()
		if len(one.Problems) == 0 {
			r.Well++
		}
		if r.LastSeen == nil || one.LastSeen.After(*r.LastSeen) {
			r.LastSeen = &one.LastSeen
		}
		r.List = append(r.List, one)
	}
	if !slices.ContainsFunc(r.List, func(one Replica) bool { return !one.Late && one.State != StateVanished }) {
		readOnly, err := tx.ReadOnly(ctx)
		if err != nil {
			return nil, err
		}
		if readOnly.Fact != "" {
			r.ReadOnly = &readOnly
		}
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

// assess collects the problems.
func (r *Replica) assess() {
	r.Late = r.Age > ReplicaLate
	r.Problems = []string{}
	if r.Late {
		r.Problems = append(r.Problems, "silent for "+phrase.Span(r.Age))
	}
	if !r.Alive() {
		return // an old report says nothing
	}
	for _, fault := range r.Details.Installation {
		r.Problems = append(r.Problems, "installation at fault: "+fault.String())
	}
	r.Problems = append(r.Problems, r.Troubles()...)
	for _, name := range r.SilentLoops() {
		problem := fmt.Sprintf("loop %s is silent for %s", name, phrase.Span(r.Silence(name)))
		if failure := r.Details.Loops[name].Error; failure != "" {
			problem = fmt.Sprintf("loop %s fails for %s: %s", name, phrase.Span(r.Silence(name)), failure)
		}
		r.Problems = append(r.Problems, problem)
	}
}

// Alive reports whether its last report is younger than ReplicaAlive.
func (r *Replica) Alive() bool { return r.State != StateVanished && r.Age <= ReplicaAlive }

// Starting reports whether it has just started: the broker has not counted its consumers, and loops
// may not have reported.
func (r *Replica) Starting(at time.Time) bool {
	return r.Alive() && at.Sub(r.Started) < startGrace && !r.Details.Clock.IsZero()
}

// recreatedFor is how long a recreated queue is shown.
const recreatedFor = 10 * time.Minute

// Troubles are the problems of its connections and its batch.
func (r *Replica) Troubles() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	now := r.Details.Clock.Add(r.Age)
	starting, refused := r.LastSeen.Sub(r.Started) < startTimeout, false
	for _, link := range r.Details.Connections {
		switch {
		case link.Blocked:
			add("the broker blocks it since %s (%s)", phrase.Span(now.Sub(link.Since)), link.Reason)
		case !link.Up && !starting:
			add("no %s connection to the broker since %s (%s)", link.Purpose, phrase.Span(now.Sub(link.Since)),
				link.Reason)
		case link.Up && link.Reason != "":
			refused = true
			add("refused on its %s connection to the broker since %s (%s)", link.Purpose,
				phrase.Span(now.Sub(link.Since)), link.Reason)
		}
	}
	held := len(r.Details.Installation) > 0 // a problem of its own
	if silent := r.unsubscribed(); len(silent) > 0 && r.State == "connected" && !starting && !held && !refused {
		add("does not consume %s", strings.Join(silent, ", "))
	}
	for _, one := range r.Details.Recreated {
		if age := now.Sub(one.At); age < recreatedFor {
			add("queue %s was gone and was declared again %s ago (%s); its messages are sent again from the database",
				one.Queue, phrase.Span(age), one.Cause)
		}
	}
	if since := r.Details.RoundSince; since != nil && now.Sub(*since) > BatchTimeout {
		add("its batch is under way for %s", phrase.Span(now.Sub(*since)))
	}
	return list
}

// SilentLoops names the loops without a success for too long.
func (r *Replica) SilentLoops() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Details.Loops)) {
		if r.Silence(name) > r.Details.Loops[name].Timeout {
			names = append(names, name)
		}
	}
	return names
}

// Overdue is by how much the last success of a loop is too old.
func (r *Replica) Overdue(loop string) time.Duration {
	return r.Silence(loop) - r.Details.Loops[loop].Timeout
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

// Silence is how long a loop has not succeeded, at most since the start of the replica.
func (r *Replica) Silence(loop string) time.Duration {
	tick, ok := r.Loops[loop]
	if !ok {
		return max(r.LastSeen.Sub(r.Started), 0) + r.Age
	}
	return max(r.Details.Clock.Sub(tick), 0) + r.Age
}

// OldestTick is the loop that has used most of its allowed silence; empty if the replica does not
// report loops.
func (r *Replica) OldestTick() (loop string, silence time.Duration) {
	worst := -1.0
	for _, name := range slices.Sorted(maps.Keys(r.Details.Loops)) {
		of := r.Silence(name)
		if share := float64(of) / float64(max(r.Details.Loops[name].Timeout, 1)); share > worst {
			worst, loop, silence = share, name, of
		}
	}
	return loop, silence
}

// Problem is the first problem; empty for a healthy replica.
func (r *Replica) Problem() string {
	if len(r.Problems) == 0 {
		return ""
	}
	return r.Problems[0]
}

// Short is the beginning of its id, as in the replica's log.
func (r *Replica) Short() string { return r.ID[:min(len(r.ID), 8)] }

// Oldest is the age of the oldest report.
func (r *Replicas) Oldest() time.Duration {
	var oldest time.Duration
	for _, one := range r.List {
		oldest = max(oldest, one.Age)
	}
	return oldest
}
