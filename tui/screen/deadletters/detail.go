package deadletters

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Detail is the view of one dead letter: the selected one of the list, or any other of the ledger.
type Detail struct {
	env     *screen.Env
	list    *DeadLetters
	section int
	// inside is true while the document has the focus instead of the list.
	inside  bool
	doc     *jsonview.View
	shown   shown
	content *content // of the last reading
	linked  int64    // the dead letter that another view opened; zero shows the selected one
}

// shown identifies the text in the document.
type shown struct {
	content *content
	section int
}

// NewDetail makes the view.
func NewDetail(env *screen.Env, list *DeadLetters) *Detail {
	m := &Detail{env: env, list: list, doc: jsonview.New()}
	m.focus(false)
	return m
}

// View is the name of the screen.
func (m *Detail) View() screen.View { return keymap.InDeadLetter }

// Table is the list, with its marks.
func (m *Detail) Table() *widget.Table { return m.list.Table() }

// ID is the shown dead letter; zero if the list is empty.
func (m *Detail) ID() int64 {
	if r := m.current(); r != nil {
		return r.ID
	}
	return 0
}

// Feeds is what the view needs polled.
func (m *Detail) Feeds() []screen.Feed {
	if m.ID() == 0 {
		return m.list.Feeds()
	}
	return []screen.Feed{screen.FeedLedgerDetail, screen.FeedDeadLetters, screen.FeedRoute}
}

// Title is the text of the title rule.
func (m *Detail) Title() (left, right string) {
	r := m.current()
	if r == nil {
		return "DLQ › nothing", ""
	}
	left = "DLQ › "
	if m.linked == 0 {
		left += strconv.Itoa(m.list.Table().Cursor()+1) + " of " + strconv.Itoa(m.list.Len()) + " › "
	}
	return left + r.name(), "died " + widget.Age(m.env.Since(*r.died())) + " ago · " + r.Reason
}

// Changed takes over new data.
func (m *Detail) Changed(feed screen.Feed) {
	if d := m.env.Data.LedgerDetail; feed == screen.FeedLedgerDetail && d != nil {
		m.content = newContent(d)
	}
	m.prepare()
}

// prepare puts the section into the document.
func (m *Detail) prepare() {
	now := shown{m.read(m.ID()), m.section}
	if now.content != nil && now != m.shown {
		m.shown = now
		m.doc.Set(now.content.document(m.section))
	}
}

// read is the last reading if it is about a dead letter, or nil.
func (m *Detail) read(id int64) *content {
	if m.content != nil && m.content.ID == id && m.content.LedgerDetail == m.env.Data.LedgerDetail {
		return m.content
	}
	return nil
}

// current is the shown dead letter; nil if the list is empty.
func (m *Detail) current() *row {
	if m.linked == 0 {
		return m.list.Current()
	}
	entry := &monitor.LedgerEntry{ID: m.linked}
	if c := m.read(m.linked); c != nil {
		entry = &c.LedgerEntry
	}
	r := newRow(entry)
	return &r
}

// Acts is the menu of the list, or of the dead letter that another view opened.
func (m *Detail) Acts() (act.Menu, bool) {
	if m.linked == 0 {
		return m.list.Acts()
	}
	if c := m.read(m.linked); c != nil {
		return act.ForDeadLetter(&c.LedgerEntry, m.env.Data.Depth()), true
	}
	return act.Menu{}, false
}

// Leave takes the focus from the document.
func (m *Detail) Leave() bool {
	was := m.inside
	m.focus(false)
	return was
}

// focus has the keys go to the document or to the list.
func (m *Detail) focus(inside bool) {
	m.inside = inside
	m.doc.Focus(inside)
}

var (
	markActions = []keymap.Action{keymap.Mark, keymap.MarkRange, keymap.MarkAll, keymap.Unmark}
	docActions  = []keymap.Action{
		keymap.Left, keymap.Right, keymap.FoldAll, keymap.Wrap, keymap.Reveal,
		keymap.NextMatch, keymap.PrevMatch, keymap.HalfDown, keymap.HalfUp,
	}
)

// Do carries out an action. Until tab leads into the document, rows are the dead letters of the list.
func (m *Detail) Do(action keymap.Action) screen.Effect {
	effect := screen.Effect{Handled: true}
	switch {
	case action == keymap.NextPane:
		m.turn(1)
	case action == keymap.PrevPane:
		m.turn(-1)
	case action == keymap.Open:
		if x, ok := m.current().related(); ok {
			return screen.OpenExecution(x.ID)
		}
		effect.Note = "The dead letter has no execution."
	case action == keymap.GroupBy:
		return m.list.Do(action)
	case m.linked != 0 && slices.Contains(markActions, action):
		effect.Note = "Dead letters are marked in their list: 5."
	case m.linked == 0 && action == keymap.Mark:
		m.list.Table().Mark()
		m.reset()
	case m.linked != 0 || m.inside || slices.Contains(docActions, action):
		effect.Handled = m.doc.Do(action)
	default:
		if effect.Handled = screen.MoveTable(m.list.Table(), action); effect.Handled {
			m.reset()
		}
	}
	return effect
}

// reset begins the document anew after another dead letter was selected.
func (m *Detail) reset() {
	m.doc.Reset()
	m.shown = shown{}
	m.prepare()
}

// Behind names the feed whose last reading is about another dead letter or route.
func (m *Detail) Behind() screen.Feed {
	if id := m.ID(); id != 0 && m.read(id) == nil {
		return screen.FeedLedgerDetail
	}
	if exchange, key, ok := m.Target(); ok && m.route(exchange, key) == nil &&
		m.env.Data.Fresh(screen.FeedRoute).Err == nil {
		return screen.FeedRoute
	}
	return ""
}

// turn moves the focus from the list through the sections and back.
func (m *Detail) turn(step int) {
	at := 0 // the list
	if m.inside {
		at = m.section + 1
	}
	at = (at + step + len(sections) + 1) % (len(sections) + 1)
	if m.focus(at > 0); m.inside {
		m.section = at - 1
	}
	m.prepare()
}

// inList is what Shown says of the selected dead letter of the list.
const inList = "list"

// Shown names the dead letter that another view opened.
func (m *Detail) Shown() string {
	if m.linked == 0 {
		return inList
	}
	return strconv.FormatInt(m.linked, 10)
}

// Show shows a dead letter of the ledger, or the selected one of the list.
func (m *Detail) Show(name string) {
	m.section, m.linked = 0, screen.Number(name)
	m.focus(false)
	m.reset()
}

// RelatedExecution is the execution of the dead letter.
func (m *Detail) RelatedExecution() (*monitor.Execution, bool) { return m.current().related() }

// Relations lists what is related to the dead letter.
func (m *Detail) Relations() (title string, list []screen.Relation, ok bool) {
	return m.current().relations()
}

// Shows is the dead letter, with the place of the cursor in its document.
func (m *Detail) Shows() (screen.Thing, bool) {
	r := m.current()
	if r == nil {
		return screen.Thing{}, false
	}
	thing := r.export(*r.LedgerEntry)
	if c := m.read(r.ID); c != nil {
		reading := *c.LedgerDetail
		if reading.Body.Base64 != nil {
			reading.Body.Base64, reading.Body.Text = nil,
				"not exported: secrets in it cannot be masked; attune-executor dlq show prints it"
		}
		thing.Value = r.document(&reading)
	}
	thing.Path, thing.Text, thing.InDocument = m.doc.Value()
	return thing, true
}

// Search looks for a text in the document.
func (m *Detail) Search(text string) int { return m.doc.Search(text) }

// Query is the searched text.
func (m *Detail) Query() string { return m.doc.Query() }

// Hide masks revealed secrets.
func (m *Detail) Hide() { m.doc.Hide() }

// Render draws the view.
func (m *Detail) Render(w, h int) []string {
	e, r := m.env, m.current()
	if r == nil {
		return []string{"", " " + e.Dim("The dead letter is no longer in the list. esc goes back.")}
	}
	c := m.read(r.ID)
	if c == nil {
		return e.Missing(screen.FeedLedgerDetail, r.name(), w)
	}
	lines, plan, dw, dh := m.around(r, c, w, h)
	lines = append(append(lines, widget.Fit(m.document(dw, dh), dw, dh)...), plan...)
	if dw == w {
		return lines
	}
	_, rw := screen.Halves(w)
	right := append(m.executionLines(r, c.ExecutionNow), m.compareLines(r, c, rw)...)
	return e.Beside(lines, append(append(right, m.sameLines(r)...), m.targetLines(r, c)...), w, h)
}

// SetSize fits the document into a body of w by h cells.
func (m *Detail) SetSize(w, h int) {
	if c := m.read(m.ID()); c != nil {
		_, _, dw, dh := m.around(m.current(), c, w, h)
		m.doc.SetSize(dw, dh-1)
	}
}

// around is the lines above and below the document, and the size of the document with its title.
func (m *Detail) around(r *row, c *content, w, h int) (above, plan []string, dw, dh int) {
	plan = m.planLines(r)
	if w >= 120 {
		lw, _ := screen.Halves(w)
		dw = lw - 1
		above = append(m.head(c, dw), m.deathLines(c, dw, 8)...)
	} else {
		dw, plan = w, plan[:2]
		above = append(append(m.head(c, w), m.deathLines(c, w, 4)...), m.compareLines(r, c, w)...)
	}
	return above, plan, dw, max(3, h-len(above)-len(plan))
}

func (m *Detail) head(c *content, w int) []string {
	text := " id " + widget.CutMiddle(widget.Clean(dash(c.MessageID)), max(8, w/3)) + "   " +
		widget.Clean(dash(c.Type)) + " " + widget.Clean(c.version) + "   " + strconv.FormatInt(c.Size, 10) + " B"
	lines := []string{widget.Cut(text, w)}
	if c.sentBefore != "" {
		lines = append(lines, " "+m.env.Paint(theme.Warn, widget.Cut("▲ "+widget.Clean(c.sentBefore), max(1, w-2))))
	}
	return append(lines, "")
}

// deathLines are the deaths that the broker recorded, two lines each.
func (m *Detail) deathLines(c *content, w, limit int) []string {
	e := m.env
	lines := []string{widget.Spread(" "+e.Dim("DEATHS"), e.Dim("time is the first death of its kind"), w-1)}
	if len(c.deaths) == 0 {
		return append(lines, "  the broker recorded none", "")
	}
	for i, d := range c.deaths {
		if i*2 >= limit {
			lines = append(lines, e.Dim("  … "+strconv.Itoa(len(c.deaths)-i)+" earlier"))
			break
		}
		at := "-"
		if !d.Time.IsZero() {
			at = d.Time.UTC().Format("2006-01-02 15:04:05Z")
		}
		text := "  " + strconv.Itoa(i+1) + " " + dash(d.Reason) + "  " + dash(d.Queue) + "  x" +
			strconv.FormatInt(d.Count, 10) + "  first " + at
		if d.Expiration != "" {
			text += "  ttl " + d.Expiration + "ms"
		}
		route := "    ex " + dash(d.Exchange) + "  key " + dash(strings.Join(d.RoutingKeys, ", "))
		lines = append(lines, widget.Cut(widget.Clean(text), w), widget.Cut(widget.Clean(route), w))
	}
	return append(lines, "")
}

func (m *Detail) document(w, h int) []string {
	state := "tab goes in"
	if m.inside {
		state = m.doc.Status()
	}
	title := widget.Spread(" "+m.env.Tabs(sections, m.section, w-2), m.env.Dim(widget.Clean(state)), w-1)
	return append([]string{title}, m.doc.Lines(w, max(0, h-1), m.env.Theme)...)
}

// executionLines describe the execution as it is now.
func (m *Detail) executionLines(r *row, x *monitor.DeadLetterExecution) []string {
	e := m.env
	if x == nil {
		return []string{e.Dim("EXECUTION ROW"), "there is none", ""}
	}
	action := widget.Clean(x.ActionRef)
	if x.ActionGone {
		action += e.Paint(theme.Warn, "  ▲ deleted")
	}
	parent := screen.Reference(x.Parent)
	if x.ParentStatus != "" {
		parent += "  " + e.State(x.ParentStatus)
	}
	lines := []string{e.Dim("EXECUTION ROW " + strconv.FormatInt(x.ID, 10) + "   enter opens")}
	for _, fact := range []screen.Fact{
		{Name: "status", Text: e.State(x.Status) + "  " + widget.Clean(x.Reason)},
		{Name: "action", Text: action},
		{Name: "worker", Text: screen.Reference(x.WorkerID)},
		{Name: "parent", Text: parent},
		{Name: "updated", Text: x.Updated.UTC().Format("15:04:05.000Z")},
		{Name: "tries", Text: r.tries()},
	} {
		lines = append(lines, e.Label(fact.Name, 10)+fact.Text)
	}
	return append(lines, "")
}

// compareLines compare the message with the execution.
func (m *Detail) compareLines(r *row, c *content, w int) []string {
	e, x := m.env, c.ExecutionNow
	each := max(8, min(27, (w-24)/2))
	lines := []string{" " + e.Dim(widget.Left("MESSAGE SAYS", each+12)+"ROW SAYS NOW")}
	var said struct {
		ExecutionID *int64     `json:"execution_id"`
		ActionRef   string     `json:"action_ref"`
		WorkerID    *int64     `json:"worker_id"`
		AttemptAt   *time.Time `json:"scheduled_attempt_updated_at"`
		Attempt     *int64     `json:"attempt"`
	}
	switch {
	case json.Unmarshal(c.payload, &said) != nil || said.ExecutionID == nil:
		return append(lines, "  it names no execution", "")
	case x == nil:
		return append(lines, "  execution "+screen.Reference(said.ExecutionID)+": there is no such row", "")
	}
	compare := func(name, message, row string, same bool, note string) {
		sign := e.Paint(theme.Good, "✓")
		if !same {
			sign = e.Paint(theme.Warn, "▲ "+note)
		}
		lines = append(lines, "  "+e.Label(name, 11)+
			widget.Left(widget.CutMiddle(widget.Clean(message), each-2), each)+
			widget.Left(widget.CutMiddle(widget.Clean(row), each-2), each)+sign)
	}
	const clock = "15:04:05.000Z"
	compare("execution", screen.Reference(said.ExecutionID), screen.Reference(&x.ID), *said.ExecutionID == x.ID, "")
	if said.ActionRef != "" {
		compare("action", said.ActionRef, x.ActionRef, said.ActionRef == x.ActionRef, "differs")
	}
	if id := said.WorkerID; id != nil {
		compare("worker", screen.Reference(id), screen.Reference(x.WorkerID), x.WorkerID != nil && *id == *x.WorkerID,
			"moved")
	}
	if at := said.AttemptAt; at != nil {
		compare("attempt at", at.UTC().Format(clock), x.Updated.UTC().Format(clock), at.Equal(x.Updated), "moved")
	}
	if n := said.Attempt; n != nil {
		compare("attempt", screen.Reference(n), screen.Reference(&x.Attempt), *n == x.Attempt, "newer")
	}
	return append(lines, "  "+e.Label("status", 11)+widget.Blank(each)+e.State(x.Status)+"  "+e.Theme.Glyphs.Arrow+" "+
		r.verdict.text, "")
}

// sameLines count the dead letters with the same problem.
func (m *Detail) sameLines(r *row) []string {
	by := &groupings[m.list.grouping]
	key, _ := by.key(r)
	for _, g := range m.list.groups.List {
		if g.key == key {
			return []string{
				m.env.Dim("SAME PROBLEM"), strconv.Itoa(len(g.keys)) + " by " + by.name,
				"in the list tab, then space marks them all", "",
			}
		}
	}
	return nil
}

// planLines are the steps of R.
func (m *Detail) planLines(r *row) []string {
	var steps []string
	switch {
	case r.verdict.class == again:
		steps = []string{"R needs a word: " + r.Verdict.Why}
	case r.verdict.class != requeue:
		steps = []string{"nothing: " + r.Verdict.Why}
	case r.Verdict.Requeue == monitor.RequeueRepeats:
		steps = []string{
			"execution " + strconv.FormatInt(r.execution(), 10) + " is repeated as a new execution, through admission",
			"the dead letter is marked requeued, with its audit, in the same commit",
			"its request is in the outbox; a running engine sends it",
		}
	default:
		steps = []string{
			"the message is put into the outbox for " + r.Exchange + ", key " + r.RoutingKey,
			"the dead letter is marked requeued, in the same commit",
		}
	}
	lines := []string{m.env.Rule("PLAN PREVIEW  R", "nothing done yet", 60)}
	for i, step := range steps {
		lines = append(lines, "  "+strconv.Itoa(i+1)+" "+widget.Clean(step))
	}
	return lines
}
