// Package deadletters shows the ledger of dead letters: what died, what was decided, and
// what a requeue would do; beside it the depth of the broker's queue, from which S takes
// messages into the ledger.
//
// A depth of zero on the broker is not health by itself: a consumer may be handling
// them, or they may be lost before they arrive. So the view shows both numbers.
package deadletters

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
)

// DeadLetters is the view.
type DeadLetters struct {
	*list.List[row]

	env    *screen.Env
	groups *list.Table[group]
	older  older
	// all are the rows that were read, by is what they are grouped by.
	all []row
	by  int
	// onGroups is true while the groups have the focus.
	onGroups bool
}

// New makes the view.
func New(env *screen.Env) *DeadLetters {
	v := &DeadLetters{env: env}
	v.groups = v.newGroups()
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InDeadLetters, One: "dead letter", Many: "dead letters",
		Feed: screen.FeedDeadLetters, Behind: v.behind,
		Needs: func() []screen.Feed { return []screen.Feed{screen.FeedLedger, screen.FeedPast} },
		Read:  func() bool { return env.Data.DeadLetters != nil }, Rows: func() []row { return v.all }, Fields: fields,
		Any: func(r *row) []string {
			return []string{
				r.name, r.reason, r.action, r.kind, r.from, r.now, r.decision, r.problem, r.verdict.text,
				strconv.FormatInt(r.execution, 10), r.queue(),
			}
		},
		Key:     func(r *row) string { return r.key },
		Name:    func(r *row) string { return r.name },
		Tie:     func(a, b *row) int { return cmp.Compare(a.at, b.at) },
		Trouble: (*row).troubles,
		Forget:  func() { v.restart(); v.gather() },
		After:   func() { v.groups.SetList(groupings[v.by].gather(v.Listed())) },
		Acts:    func(*row) (act.Menu, bool) { return act.Menu{}, false },
		Thing:   func(r *row) screen.Thing { return r.thing() },
		Beyond: func() string {
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
	right = v.Arranged()
	if v.Order() == (screen.Order{}) {
		right = screen.ListTitle("waiting first", v.Problems(), v.Filter())
	}
	right += " · " + v.env.Plural(int64(v.Len()), "dead letter", "dead letters") + " · VERDICT: what R would do"
	return "DLQ " + monitor.DeadLetterQueue, right + v.env.Mark(screen.FeedDeadLetters)
}

// Select puts the cursor on a line of the body.
func (v *DeadLetters) Select(line int) bool {
	_, first := v.draw(v.env.Width, v.env.Height)
	return v.Table().Select(line - first - 1)
}

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
		made[before[i].ledger] = &before[i]
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
		v.SetPreviewed(!v.Previewed())
		v.onGroups = false
		return screen.Effect{Handled: true}
	case keymap.NextPane, keymap.PrevPane:
		v.onGroups = !v.onGroups && v.Previewed() && v.groups.Len() > 0
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
	effect := screen.Effect{Handled: true}
	switch action {
	case keymap.MarkAll, keymap.MarkRange:
	case keymap.Unmark:
		v.Table().Unmark()
	case keymap.Mark:
		if g := v.groups.Current(); g != nil {
			if v.marked(g) == len(g.keys) {
				v.Table().UnmarkKeys(g.keys)
			} else {
				v.Table().MarkKeys(g.keys)
			}
			v.groups.Move(1)
		}
	default:
		effect.Handled = screen.MoveTable(v.groups.Table, action)
	}
	return effect
}

// open shows the letter under the cursor.
func (v *DeadLetters) open() screen.Effect {
	effect := screen.Effect{Handled: true}
	if g := v.groups.Current(); v.onGroups && g != nil {
		v.onGroups = false
		if at := slices.IndexFunc(v.Listed(), func(r row) bool { return r.key == g.keys[0] }); at >= 0 {
			v.Table().Move(at - v.Table().Cursor())
		}
	} else if v.Current() != nil {
		effect.Open = screen.Nav{View: keymap.InLetter, Shown: inList}
	}
	return effect
}

// Leave takes the focus back from the groups.
func (v *DeadLetters) Leave() bool {
	was := v.onGroups
	v.onGroups = false
	return was
}

// Acts is what may be done with the marked letters, with the one under the cursor, or
// with the broker's queue.
func (v *DeadLetters) Acts() (act.Menu, bool) {
	if v.Table().Marks() > 0 && v.recent() != nil {
		return act.ForMarkedLetters(v.markedLetters()), true
	}
	depth := v.env.Data.Depth()
	if r := v.Current(); r != nil {
		return act.ForLetter(r.ledger, depth), true
	}
	return act.ForNoLetter(depth), true
}

// markedLetters are the letters of the ledger that are marked, also those that no page
// has brought.
func (v *DeadLetters) markedLetters() []act.Target {
	targets := screen.Targets(v.Table().Marked())
	for i := range targets {
		targets[i].Ref, targets[i].Name = targets[i].Name, "dead letter "+targets[i].Name
	}
	return targets
}

// DiscardsFiltered reports whether a discard of all is about what the filter matches: nothing is
// marked, and there is a filter.
func (v *DeadLetters) DiscardsFiltered() bool {
	_, ledger := v.All()
	return ledger && v.Table().Marks() == 0 && (v.Filter() != "" || v.Problems())
}

// chosen are the marked rows that are known still, or else the one under the cursor.
func (v *DeadLetters) chosen() []*row {
	if v.Table().Marks() == 0 {
		if r := v.Current(); r != nil {
			return []*row{r}
		}
		return nil
	}
	var chosen []*row
	for i := range v.all {
		if v.isMarked(v.all[i].key) {
			chosen = append(chosen, &v.all[i])
		}
	}
	return chosen
}
