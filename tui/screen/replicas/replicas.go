// Package replicas is the list of the engine's replicas with their problems and messages in flight.
package replicas

import (
	"cmp"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Replicas is the view.
type Replicas = list.List[row]

type row struct {
	monitor.Replica

	seen, at time.Time
}

var fields = []list.Field[row]{
	list.Text("REPLICA", 12, func(r *row) string { return r.ID }).
		Drawn(func(e *screen.Env, r *row) widget.Cell {
			look := e.Theme.Of(map[bool]string{true: "active", false: "failed"}[r.Problem() == ""])
			return widget.Cell{Text: look.Glyph + " " + r.Short(), Role: look.Role}
		}).
		Term("replica", "its id; a star stands for anything"),
	list.Order(1, "problem", list.Descending(func(r *row) int { return len(r.Problems) })),
	list.Text("HOST", 16, func(r *row) string { return r.Host }).Grow().Middle().Sort(2, "host").
		Term("host", "its host"),
	list.Text("VERSION", 10, func(r *row) string { return r.Version }).Middle().Dim().Priority(3).
		Term("version", "its version"),
	list.Text("BROKER", 12, func(r *row) string {
		if !r.Alive() { // its last report says nothing about now
			return widget.Unknown
		}
		return r.State
	}).Watch().Priority(1),
	list.Age("SEEN", 7, func(r *row) *time.Time { return &r.seen }).
		Drawn(func(e *screen.Env, r *row) widget.Cell { return e.Worry(widget.Age(e.Since(r.seen)), r.Late) }).
		Term("seen", "when it reported last").Sort(3, "seen"),
	list.Draw("TICK", 9, func(e *screen.Env, r *row) widget.Cell {
		return widget.Cell{Text: e.Tick(&r.Replica, r.at)}
	}).Right().Priority(2),
	list.Number("FLIGHT", 6, func(r *row) int64 { return int64(r.InFlight) }).Watch().Priority(2),
	list.Text("NOTE", 30, note).Dim().Share(60).Term("note", "its note").Kind(filter.Within),
}

func note(r *row) string { return strings.Join(r.Problems, "; ") }

// New makes the view.
func New(env *screen.Env) *Replicas {
	known := func() *monitor.Replicas {
		if env.Data.Overview == nil {
			return nil
		}
		return env.Data.Overview.Replicas
	}
	return list.New(env, list.Spec[row]{
		View: keymap.InReplicas, Title: "Replicas", Singular: "replica", Plural: "replicas", Feed: screen.FeedOverview,
		Loaded: func() bool { return known() != nil },
		Rows: func() []row {
			all := known()
			rows := make([]row, len(all.List))
			for i := range all.List {
				rows[i] = row{Replica: all.List[i], seen: all.At.Add(-all.List[i].Age), at: all.At}
			}
			return rows
		},
		Fields:      fields,
		SearchTexts: func(r *row) []string { return []string{r.ID, r.Host, r.Version, note(r)} },
		Key:         func(r *row) string { return r.ID },
		Name:        func(r *row) string { return r.Short() },
		TieBreak:    func(a, b *row) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) },
		IsProblem:   func(r *row) bool { return r.Problem() != "" },
		EmptyText: []string{
			" No replica of the engine runs, so nothing is admitted. Start one:",
			"   attune-executor serve",
		},
		Export: func(r *row) screen.Thing {
			return screen.Thing{
				Name: "replica " + r.Short(), ID: r.ID, Value: r.Replica,
				Table: "engine_replica", Where: "id = '" + r.ID + "'", Command: []string{"doctor"},
			}
		},
	})
}
