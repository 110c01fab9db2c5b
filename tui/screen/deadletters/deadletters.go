// Package deadletters shows the ledger of dead letters: what died, what was decided, and
// what a requeue would do; beside it the depth of the broker's queue, from which S takes
// messages into the ledger.
//
// A depth of zero on the broker is not health by itself: a consumer may be handling
// them, or they may be lost before they arrive. So the view shows both numbers.
package deadletters

import (
	"cmp"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// DeadLetters is the view.
type DeadLetters struct {
	*list.List[row]

	env    *screen.Env
	groups *widget.Table
	older  older
	// all are the rows that were read.
	all      []row
	by       int
	gathered []group
	// onGroups is true while the groups have the focus.
	onGroups bool
	first    int
}

// New makes the view.
func New(env *screen.Env) *DeadLetters {
	v := &DeadLetters{env: env, groups: widget.NewTable(groupColumns)}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InDeadLetters, Singular: "dead letter", Plural: "dead letters",
		Feed: screen.FeedDeadLetters, Stale: v.behind,
		MoreFeeds: func() []screen.Feed { return []screen.Feed{screen.FeedLedger, screen.FeedPast} },
		Loaded:    func() bool { return env.Data.DeadLetters != nil }, Rows: func() []row { return v.all },
		Fields: fields,
		SearchTexts: func(r *row) []string {
			return []string{
				r.name(), r.Reason, r.ActionRef, r.Type, r.from(), r.StatusNow, r.Decision, r.problem, r.verdict.text,
				strconv.FormatInt(r.execution(), 10), r.Queue,
			}
		},
		Key:       (*row).key,
		Name:      (*row).name,
		TieBreak:  func(a, b *row) int { return cmp.Compare(a.at, b.at) },
		IsProblem: (*row).troubles,
		Reset:     func() { v.restart(); v.gather() },
		RowsChanged: func() {
			v.gathered = groupings[v.by].gather(v.VisibleRows())
			v.groups.SetRows(&groupRows{env, v.gathered, v.isMarked})
		},
		Actions: func(*row) (act.Menu, bool) { return act.Menu{}, false },
		Export:  func(r *row) screen.Thing { return r.thing() },
		Truncated: func() string {
			if v.more() != "" {
				return "the ledger holds more"
			}
			return ""
		},
	})
	v.restart()
	return v
}

// Title is the text of the title rule.
func (v *DeadLetters) Title() (left, right string) {
	right = v.Arrangement()
	if v.Order() == (screen.Order{}) {
		right = screen.ListTitle("waiting first", v.Problems(), v.Filter())
	}
	right += " · " + v.env.Plural(int64(v.Len()), "dead letter", "dead letters") + " · VERDICT: what R would do"
	return "DLQ " + monitor.DeadLetterQueue, right + v.env.Mark(screen.FeedDeadLetters)
}

// Select puts the cursor on a line of the body.
func (v *DeadLetters) Select(line int) bool { return v.Table().Select(line - v.first - 1) }

// Changed takes over new data.
func (v *DeadLetters) Changed(feed screen.Feed) {
	if feed == screen.FeedLedger {
		v.take(v.env.Data.LedgerPage)
	}
	if feed == screen.FeedLedger || feed == screen.FeedDeadLetters {
		v.gather()
		v.Rebuild(false)
	}
}

// gather makes the rows anew.
func (v *DeadLetters) gather() {
	before := v.all
	v.all = make([]row, 0, len(before))
	made := make(map[*monitor.LedgerEntry]*row, len(before)) // of which most come again as they were
	for i := range before {
		made[before[i].LedgerEntry] = &before[i]
	}
	add := func(l *monitor.LedgerEntry) {
		if r := made[l]; r != nil {
			v.all = append(v.all, *r)
			return
		}
		v.all = append(v.all, ledgerRow(l))
	}
	if d := v.env.Data.DeadLetters; d != nil && d.Ledger != nil {
		for i := range d.Ledger.Recent {
			add(&d.Ledger.Recent[i])
		}
		v.gatherOlder(add)
	}
	for i := range v.all {
		v.all[i].at = i
	}
}

func (v *DeadLetters) isMarked(key string) bool { return v.Table().MarkName(key) != "" }

// Do carries out an action.
func (v *DeadLetters) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.GroupBy:
		v.by = (v.by + 1) % len(groupings)
		v.Rebuild(false)
		return screen.Effect{Handled: true, Note: "grouped by " + groupings[v.by].name}
	case keymap.Problems:
		return v.List.Do(action)
	case keymap.Preview:
		v.ShowPreview(!v.PreviewShown())
		v.onGroups = false
		return screen.Effect{Handled: true}
	case keymap.NextPane, keymap.PrevPane:
		v.onGroups = !v.onGroups && v.PreviewShown() && len(v.gathered) > 0
		return screen.Effect{Handled: true}
	case keymap.Open:
		return v.open()
	}
	if v.onGroups {
		return v.doGroups(action)
	}
	effect := screen.Effect{Handled: screen.MoveTable(v.Table(), action)}
	switch {
	case action == keymap.Top && v.Table().Marks() == 0:
		v.restart() // from the top the ledger is read anew, with what came meanwhile
		v.gather()
		v.Rebuild(false)
	case action == keymap.Bottom:
		v.older.bounded = false // it is asked for
	case action == keymap.MarkAll:
		effect.Take = v.more() != ""
	}
	return effect
}

// behind asks for the next page of the ledger when the end of what was read is near.
func (v *DeadLetters) behind() screen.Feed {
	if v.wanting() {
		return screen.FeedLedger
	}
	return ""
}

// doGroups is Do while the groups have the focus: a mark is one of the whole group.
func (v *DeadLetters) doGroups(action keymap.Action) screen.Effect {
	if action != keymap.Mark {
		if action == keymap.MarkAll || action == keymap.MarkRange {
			return screen.Effect{Handled: true}
		}
		if action == keymap.Unmark {
			v.Table().Unmark()
			return screen.Effect{Handled: true}
		}
		return screen.Effect{Handled: screen.MoveTable(v.groups, action)}
	}
	at := v.groups.Cursor()
	if at < 0 {
		return screen.Effect{Handled: true}
	}
	keys := v.gathered[at].keys
	marked := 0
	for _, key := range keys {
		if v.isMarked(key) {
			marked++
		}
	}
	if marked == len(keys) {
		v.Table().UnmarkKeys(keys)
	} else {
		v.Table().MarkKeys(keys)
	}
	v.groups.Move(1)
	return screen.Effect{Handled: true}
}

// open shows the letter under the cursor.
func (v *DeadLetters) open() screen.Effect {
	if v.onGroups && v.groups.Cursor() >= 0 {
		want := v.gathered[v.groups.Cursor()].keys[0]
		for i := range v.VisibleRows() {
			if v.VisibleRows()[i].key() == want {
				v.Table().Move(i - v.Table().Cursor())
			}
		}
		v.onGroups = false
		return screen.Effect{Handled: true}
	}
	if v.Current() == nil {
		return screen.Effect{Handled: true}
	}
	return screen.Effect{Handled: true, Open: screen.Nav{View: keymap.InLetter, Shown: inList}}
}

// Leave takes the focus back from the groups.
func (v *DeadLetters) Leave() bool {
	was := v.onGroups
	v.onGroups = false
	return was
}
