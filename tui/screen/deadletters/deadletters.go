// Package deadletters shows the ledger of dead letters: what died, what was decided, and
// what a requeue would do; beside it the depth of the broker's queue, from which S takes
// messages into the ledger.
//
// A depth of zero on the broker is not health by itself: a consumer may be handling
// them, or they may be lost before they arrive. So the view shows both numbers.
package deadletters

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// DeadLetters is the view.
type DeadLetters struct {
	env    *screen.Env
	table  *widget.Table
	groups *widget.Table
	screen.Filtered
	screen.Sorted

	older older
	// question counts the questions that the rows have answered.
	question int

	// all are the rows that were read, rows those that the filter lets through, in order.
	all, rows []row
	keys      []string
	problems  bool
	// brief leaves out what stands below the list.
	brief    bool
	by       int
	gathered []group
	// onGroups is true while the groups have the focus.
	onGroups bool
	first    int
}

var columns = []widget.Column{
	{Title: "DIED", Width: 7, Right: true},
	{Title: "TYPE", Width: 18, Priority: 3, Middle: true},
	{Title: "REASON", Width: 8},
	{Title: "ACTION", Width: 16, Grow: true, Middle: true},
	{Title: "EXECUTION", Width: 9, Right: true, Priority: 1},
	{Title: "NOW", Width: 12, Priority: 2},
	{Title: "TRY", Width: 4, Right: true, Priority: 6},
	{Title: "FROM", Width: 14, Priority: 5, Middle: true},
	{Title: "DECISION", Width: 9, Priority: 4},
	{Title: "VERDICT", Width: 26},
}

// New makes the view.
func New(env *screen.Env) *DeadLetters {
	v := &DeadLetters{
		env: env, table: widget.NewTable(columns), groups: widget.NewTable(groupColumns), Filtered: screen.NewFiltered(fields),
		Sorted: screen.NewSorted(sortKeys...),
	}
	v.restart()
	return v
}

// Table is the list, with its marks and columns.
func (v *DeadLetters) Table() *widget.Table { return v.table }

// Problems reports whether only what means trouble is listed.
func (v *DeadLetters) Problems() bool { return v.problems }

// View is the name of the screen.
func (v *DeadLetters) View() screen.View { return keymap.InDeadLetters }

// Feeds is what the view needs polled.
func (v *DeadLetters) Feeds() []screen.Feed {
	return []screen.Feed{screen.FeedDeadLetters, screen.FeedLedger, screen.FeedPast}
}

// Title is the text of the title rule.
func (v *DeadLetters) Title() (left, right string) {
	order := "sort " + v.SortKey() + v.Order().Arrow(v.Order().Column == byDied || v.Order().Column == byTries)
	if v.Order() == (screen.Order{}) {
		order = "waiting first"
	}
	right = screen.ListTitle(order, v.problems, v.Filter()) + " · "
	return "DLQ " + monitor.DeadLetterQueue, right + v.env.Plural(int64(len(v.rows)), "dead letter", "dead letters") + " · VERDICT: what R would do" + v.env.Mark(screen.FeedDeadLetters)
}

// SetFilter shows only what matches.
func (v *DeadLetters) SetFilter(text string) error {
	if err := v.SetQuery(text); err != nil {
		return err
	}
	v.restart()
	v.gather()
	v.arrange(true)
	return nil
}

// SetOrder orders the list.
func (v *DeadLetters) SetOrder(order screen.Order) {
	if v.Sort(order) {
		v.arrange(true)
	}
}

// Select puts the cursor on a line of the body.
func (v *DeadLetters) Select(line int) bool { return v.table.Select(line - v.first - 1) }

// Changed takes over new data.
func (v *DeadLetters) Changed(feed screen.Feed) {
	switch feed {
	case screen.FeedLedger:
		v.take(v.env.Data.LedgerPage)
		v.gather()
	case screen.FeedDeadLetters:
		v.gather()
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
	v.arrange(false)
}

// arrange applies filter and order, and gathers the groups. Unless the operator asked
// for it, rows stay where they are while somebody reads.
func (v *DeadLetters) arrange(asked bool) {
	rows := make([]row, 0, len(v.all))
	for i := range v.all {
		if r := &v.all[i]; v.wants(r) {
			rows = append(rows, *r)
		}
	}
	old := v.keys
	if asked {
		old = nil
	}
	v.rows, v.keys = screen.Arrange(v.env, rows, old, v.compare, func(r *row) string { return r.key })
	v.table.SetRows(v)
	v.gathered = groupings[v.by].gather(v.rows)
	v.groups.SetRows(&groupRows{v.env, v.gathered, v.isMarked})
}

// wants reports whether the filter lets a letter through.
func (v *DeadLetters) wants(r *row) bool {
	return (!v.problems || r.troubles()) && v.Matches(asking{v, r})
}

// Asked numbers the question that the rows answer.
func (v *DeadLetters) Asked() int { return v.question }

func (v *DeadLetters) isMarked(key string) bool { return v.table.MarkName(key) != "" }

// Do carries out an action.
func (v *DeadLetters) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.GroupBy:
		v.by = (v.by + 1) % len(groupings)
		v.arrange(false)
		return screen.Effect{Handled: true, Note: "grouped by " + groupings[v.by].name}
	case keymap.Problems:
		v.problems = !v.problems
		v.restart()
		v.gather()
		v.arrange(true)
		return screen.Effect{Handled: true}
	case keymap.Preview:
		v.brief, v.onGroups = !v.brief, false
		return screen.Effect{Handled: true}
	case keymap.NextPane, keymap.PrevPane:
		v.onGroups = !v.onGroups && !v.brief && len(v.gathered) > 0
		return screen.Effect{Handled: true}
	case keymap.Open:
		return v.open()
	}
	if v.onGroups {
		return v.doGroups(action)
	}
	effect := screen.Effect{Handled: screen.MoveTable(v.table, action)}
	switch {
	case action == keymap.Top && v.table.Marks() == 0:
		v.restart() // from the top the ledger is read anew, with what came meanwhile
		v.gather()
	case action == keymap.Bottom:
		v.older.bounded = false // it is asked for
	case action == keymap.MarkAll:
		effect.Take = v.more() != ""
	}
	return effect
}

// Behind asks for the next page of the ledger when the end of what was read is near.
func (v *DeadLetters) Behind() screen.Feed {
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
			v.table.Unmark()
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
		v.table.UnmarkKeys(keys)
	} else {
		v.table.MarkKeys(keys)
	}
	v.groups.Move(1)
	return screen.Effect{Handled: true}
}

// open shows the letter under the cursor.
func (v *DeadLetters) open() screen.Effect {
	if v.onGroups && v.groups.Cursor() >= 0 {
		want := v.gathered[v.groups.Cursor()].keys[0]
		for i := range v.rows {
			if v.rows[i].key == want {
				v.table.Move(i - v.table.Cursor())
			}
		}
		v.onGroups = false
		return screen.Effect{Handled: true}
	}
	r := v.current()
	if r == nil {
		return screen.Effect{Handled: true}
	}
	return screen.Effect{Handled: true, Open: keymap.InLetter}
}

// current is the row under the cursor, or nil.
func (v *DeadLetters) current() *row {
	if at := v.table.Cursor(); at >= 0 && at < len(v.rows) {
		return &v.rows[at]
	}
	return nil
}

// Leave takes the focus back from the groups.
func (v *DeadLetters) Leave() bool {
	was := v.onGroups
	v.onGroups = false
	return was
}

// Len is the number of rows.
func (v *DeadLetters) Len() int { return len(v.rows) }

// Key identifies a row.
func (v *DeadLetters) Key(i int) string { return v.rows[i].key }

// Name is what people call a row.
func (v *DeadLetters) Name(i int) string { return v.rows[i].name }
