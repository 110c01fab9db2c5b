// Package deadletters shows the ledger of dead letters: what died, what was decided, and what a requeue
// would do. Above it stands the depth of the broker's queue, whose messages S moves into the ledger.
//
// Both numbers are shown because a depth of zero does not mean that all is well: a consumer may be
// taking the messages, or they may be lost before they arrive.
package deadletters

import (
	"cmp"
	"strconv"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
)

// DeadLetters is the list of dead letters.
type DeadLetters struct {
	*list.List[row]

	env      *screen.Env
	all      []row // without the filter
	older    older
	groups   *list.Table[group]
	grouping int // of groupings
	onGroups bool
}

// New makes the view.
func New(env *screen.Env) *DeadLetters {
	v := &DeadLetters{env: env}
	v.groups = list.NewTable(env, func(g *group) string { return g.key }, v.groupFields())
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InDeadLetters, Singular: "dead letter", Plural: "dead letters", Feed: screen.FeedDeadLetters,
		MoreFeeds: func() []screen.Feed { return []screen.Feed{screen.FeedLedger, screen.FeedPast} },
		Stale: func() screen.Feed {
			if v.wantsPage() {
				return screen.FeedLedger
			}
			return ""
		},
		Loaded: func() bool { return env.Data.DeadLetters != nil }, Rows: func() []row { return v.all },
		Fields: fields,
		SearchTexts: func(r *row) []string {
			return []string{
				r.name(), r.Reason, r.ActionRef, r.Type, r.from(), r.StatusNow, r.Decision, r.problem, r.verdict.text,
				strconv.FormatInt(r.execution(), 10), r.Queue,
			}
		},
		Key: (*row).key, Name: (*row).name,
		TieBreak:    func(a, b *row) int { return cmp.Compare(a.at, b.at) },
		IsProblem:   func(r *row) bool { return r.Open() },
		Reset:       func() { v.restart(); v.gather() },
		RowsChanged: func() { v.groups.SetList(groupings[v.grouping].gather(v.VisibleRows())) },
		Header:      v.header,
		Actions:     func(*row) (act.Menu, bool) { return act.Menu{}, false },
		Export:      func(r *row) screen.Thing { return r.export(*r.LedgerEntry) },
		More:        func() bool { return v.more() != "" },
		NoProblem:   "No dead letter waits for a person.", Empty: v.emptyLines,
	})
	v.focus(false)
	v.restart()
	return v
}

// Title is the text of the title rule.
func (v *DeadLetters) Title() (left, right string) {
	right = v.Arrangement()
	if v.Order() == (screen.Order{}) {
		right = screen.ListTitle("waiting first", v.Problems(), v.Filter())
	}
	if v.env.Data.DeadLetters != nil {
		right += " · " + v.env.Plural(int64(v.Len()), "dead letter", "dead letters")
	}
	right += " · VERDICT: what R would do"
	return "DLQ " + monitor.DeadLetterQueue, right + v.env.Mark(screen.FeedDeadLetters)
}

// Changed takes over new data.
func (v *DeadLetters) Changed(feed screen.Feed) {
	if feed == screen.FeedLedger {
		v.merge(v.env.Data.LedgerPage)
	}
	if feed == screen.FeedLedger || feed == screen.FeedDeadLetters {
		v.gather()
		v.Rebuild(false)
	}
}

// gather lists the rows of all readings. Most entries are those of the last time: their rows are kept.
func (v *DeadLetters) gather() {
	before := make(map[*monitor.LedgerEntry]*row, len(v.all))
	for i := range v.all {
		before[v.all[i].LedgerEntry] = &v.all[i]
	}
	entries := v.entries()
	all := make([]row, len(entries))
	for i, l := range entries {
		if r := before[l]; r != nil {
			all[i] = *r
		} else {
			all[i] = newRow(l)
		}
		all[i].at = i
	}
	v.all = all
}

// Do carries out an action.
func (v *DeadLetters) Do(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	switch action {
	case keymap.GroupBy:
		v.grouping = (v.grouping + 1) % len(groupings)
		v.Rebuild(false)
		effect.Note = "grouped by " + groupings[v.grouping].name
	case keymap.Problems:
		return v.List.Do(action)
	case keymap.Preview:
		v.ShowPreview(!v.PreviewShown())
		v.focus(false)
	case keymap.NextPane, keymap.PrevPane:
		v.focus(!v.onGroups && v.PreviewShown() && v.groups.Len() > 0)
	case keymap.Open:
		if g := v.groups.Current(); v.onGroups && g != nil {
			v.Table().Seek(g.keys[0])
			v.focus(false)
		} else if v.Current() != nil {
			effect.Open = screen.Nav{View: keymap.InDeadLetter, Shown: inList}
		}
	default:
		if v.onGroups {
			effect.Handled = v.doGroups(action)
			break
		}
		effect.Handled = screen.MoveTable(v.Table(), action)
		switch {
		case action == keymap.Top && v.Table().Marks() == 0:
			v.restart() // reads the ledger anew from its top
			v.gather()
			v.Rebuild(false)
		case action == keymap.Bottom:
			v.older.bounded = false
		case action == keymap.MarkAll:
			effect.Take = v.more() != ""
		}
	}
	return effect
}

// doGroups carries out an action on the groups: marks are those of a whole group.
func (v *DeadLetters) doGroups(action keymap.Action) bool {
	switch g := v.groups.Current(); action {
	case keymap.MarkAll, keymap.MarkRange:
	case keymap.Unmark:
		v.Table().Unmark()
	case keymap.Mark:
		if g == nil {
			break
		}
		if v.marked(g) == len(g.keys) {
			v.Table().UnmarkKeys(g.keys)
		} else {
			v.Table().MarkKeys(g.keys)
		}
		v.groups.Move(1)
	default:
		return screen.MoveTable(v.groups.Table, action)
	}
	return true
}

// focus has the keys go to the groups or to the list.
func (v *DeadLetters) focus(groups bool) {
	v.onGroups = groups
	v.Table().Focus(!groups)
	v.groups.Focus(groups)
}

// InFirst reports whether the list has the focus.
func (v *DeadLetters) InFirst() bool { return !v.onGroups }

// Leave takes the focus from the groups.
func (v *DeadLetters) Leave() bool {
	was := v.onGroups
	v.focus(false)
	return was
}

// Acts is the menu for the marked dead letters, the selected one, or the broker's queue.
func (v *DeadLetters) Acts() (act.Menu, bool) {
	depth := v.env.Data.Depth()
	switch r := v.Current(); {
	case v.Table().Marks() > 0 && v.recent() != nil:
		targets := screen.Targets(v.Table().Marked())
		for i := range targets {
			targets[i].Ref, targets[i].Name = targets[i].Name, "dead letter "+targets[i].Name
		}
		return act.ForMarked("dead letter", targets), true
	case r != nil:
		return act.ForDeadLetter(r.LedgerEntry, depth), true
	default:
		return act.ForNoDeadLetter(depth), true
	}
}

// DiscardsFiltered reports whether discarding all means every match of the filter: nothing is marked,
// and there is a filter.
func (v *DeadLetters) DiscardsFiltered() bool {
	return v.recent() != nil && v.Table().Marks() == 0 && (v.Filter() != "" || v.Problems())
}

// RelatedExecution is the execution of the selected dead letter.
func (v *DeadLetters) RelatedExecution() (*monitor.Execution, bool) { return v.Current().related() }

// Relations lists what is related to the selected dead letter.
func (v *DeadLetters) Relations() (title string, list []screen.Relation, ok bool) {
	return v.Current().relations()
}

// All describes an export of every dead letter that the list would show; false without a ledger.
func (v *DeadLetters) All() (screen.LedgerExport, bool) {
	if v.recent() == nil {
		return screen.LedgerExport{}, false
	}
	matches, problems := v.Matcher(), v.Problems()
	export := screen.LedgerExport{Filter: v.request()}
	export.Waiting, export.Decided = v.kinds()
	export.Row = func(l *monitor.LedgerEntry) (int64, any, bool) {
		r := newRow(l)
		return l.ID, r.document(*l), (!problems || r.Open()) && matches(&r)
	}
	export.Any = func(l *monitor.LedgerEntry) (int64, any, bool) {
		r := newRow(l)
		return l.ID, r.document(*l), true
	}
	return export, true
}
