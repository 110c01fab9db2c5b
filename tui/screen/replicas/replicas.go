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
	{
		Column: widget.Column{Title: "REPLICA", Width: 12},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			look := e.Theme.Of("active")
			if r.Problem() != "" {
				look = e.Theme.Of("failed")
			}
			return widget.Cell{Text: look.Glyph + " " + r.Short(), Role: look.Role}
		},
		Term:  filter.Field{Name: "replica", Kind: filter.Text, Help: "its id; a star stands for anything"},
		Texts: list.TextOf(func(r *row) string { return r.ID }), Complete: true,
		Sort: list.Order[row]{
			Key: 1, Name: "problem",
			Compare: list.Descending(func(r *row) int { return len(r.Problems) }),
		},
	},
	{
		Column: widget.Column{Title: "HOST", Width: 16, Grow: true, Middle: true}, Cell: list.Plain(host),
		Term:  filter.Field{Name: "host", Kind: filter.Text, Help: "its host"},
		Texts: list.TextOf(host), Complete: true,
		Sort: list.Order[row]{Key: 2, Name: "host", Ascending: true, Compare: list.Ascending(host)},
	},
	{
		Column: widget.Column{Title: "VERSION", Width: 10, Middle: true, Priority: 3}, Cell: list.Dim(version),
		Term:  filter.Field{Name: "version", Kind: filter.Text, Help: "its version"},
		Texts: list.TextOf(version), Complete: true,
	},
	{
		Column: widget.Column{Title: "BROKER", Width: 12, Watch: true, Priority: 1},
		Cell: list.Plain(func(r *row) string {
			if !r.Alive() { // its last report says nothing about now
				return widget.Unknown
			}
			return r.State
		}),
	},
	{
		Column: widget.Column{Title: "SEEN", Width: 7, Right: true},
		Cell:   func(e *screen.Env, r *row) widget.Cell { return e.Worry(widget.Age(e.Since(r.seen)), r.Late) },
		Term:   filter.Field{Name: "seen", Kind: filter.Age, Help: "when it reported last"},
		Number: list.AgeOf(seen),
		Sort:   list.Order[row]{Key: 3, Name: "seen", Compare: list.OldestFirst(seen)},
	},
	{
		Column: widget.Column{Title: "TICK", Width: 9, Right: true, Priority: 2},
		Cell: func(e *screen.Env, r *row) widget.Cell {
			return widget.Cell{Text: e.Tick(&r.Replica, r.at)}
		},
	},
	{
		Column: widget.Column{Title: "FLIGHT", Width: 6, Right: true, Watch: true, Priority: 2},
		Cell:   list.Number(func(r *row) int64 { return int64(r.InFlight) }),
	},
	{
		Column: widget.Column{Title: "NOTE", Width: 30, Share: 60}, Cell: list.Dim(note),
		Term:  filter.Field{Name: "note", Kind: filter.Within, Help: "its note"},
		Texts: list.TextOf(note),
	},
}

func host(r *row) string     { return r.Host }
func version(r *row) string  { return r.Version }
func note(r *row) string     { return strings.Join(r.Problems, "; ") }
func seen(r *row) *time.Time { return &r.seen }

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
