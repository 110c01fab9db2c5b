package deadletters

import (
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// sections are the documents of a letter.
var sections = []string{"payload", "headers", "properties", "raw"}

// Message is the view of one letter of the list.
type Message struct {
	env     *screen.Env
	list    *DeadLetters
	section int
	// inside is true while the document has the focus: then rows are its lines.
	inside bool
	doc    *jsonview.View
	shown  string                // what doc shows
	of     *monitor.LedgerDetail // what read was made of
	read   *letter
	// alone is the letter of the ledger that another view sent to, which need not be in
	// the list; zero shows the one under the cursor of the list.
	alone int64
}

// NewMessage makes the view of the letter under the cursor of the list.
func NewMessage(env *screen.Env, list *DeadLetters) *Message {
	return &Message{env: env, list: list, doc: jsonview.New()}
}

// View is the name of the screen.
func (m *Message) View() screen.View { return keymap.InLetter }

// Table is the list that the letters are of, with its marks.
func (m *Message) Table() *widget.Table { return m.list.Table() }

// ID is the letter in sight; zero where the list has none.
func (m *Message) ID() int64 {
	if r := m.current(); r != nil {
		return r.ID
	}
	return 0
}

// Feeds is what the view needs polled.
func (m *Message) Feeds() []screen.Feed {
	if m.ID() == 0 {
		return m.list.Feeds()
	}
	return []screen.Feed{screen.FeedLetter, screen.FeedDeadLetters, screen.FeedRoute}
}

// Title is the text of the title rule.
func (m *Message) Title() (left, right string) {
	r := m.current()
	if r == nil {
		return "DLQ › nothing", ""
	}
	left = "DLQ › " + strconv.Itoa(m.list.Table().Cursor()+1) + " of " + strconv.Itoa(m.list.Len()) + " › " + r.name()
	if m.alone != 0 {
		left = "DLQ › " + r.name()
	}
	return left, "died " + widget.Age(m.env.Since(*r.died())) + " ago · " + r.Reason
}

// Changed takes over new data.
func (m *Message) Changed(feed screen.Feed) {
	if feed == screen.FeedLetter { // what is not shown is not read
		m.prepare()
	}
}

// Acts is what may be done with the letter in sight, or with those that are marked in
// the list it is of.
func (m *Message) Acts() (act.Menu, bool) {
	if m.alone == 0 {
		return m.list.Acts()
	}
	if d := m.detail(m.alone); d != nil {
		return act.ForLetter(&d.LedgerEntry, m.env.Data.Depth()), true
	}
	return act.Menu{}, false
}

// Leave takes the focus back from the document.
func (m *Message) Leave() bool {
	was := m.inside
	m.inside = false
	return was
}

// Do carries out an action. Rows are letters, until tab leads into the document.
func (m *Message) Do(action keymap.Action) screen.Effect {
	switch action {
	case keymap.NextPane, keymap.PrevPane:
		m.turn(action == keymap.NextPane)
		return screen.Effect{Handled: true}
	case keymap.Open:
		if r := m.current(); r != nil && r.Execution != nil && r.StatusNow != "" {
			return screen.OpenExecution(*r.Execution)
		}
		return screen.Effect{Handled: true, Note: "There is no execution behind it."}
	case keymap.GroupBy:
		return m.list.Do(action)
	}
	if m.alone != 0 {
		return m.doAlone(action)
	}
	if action == keymap.Mark {
		m.list.Table().Mark()
		return m.moved()
	}
	folds := action == keymap.Left || action == keymap.Right || action == keymap.FoldAll || action == keymap.Wrap ||
		action == keymap.Reveal ||
		action == keymap.NextMatch || action == keymap.PrevMatch
	if m.inside || folds || action == keymap.HalfDown || action == keymap.HalfUp {
		return screen.Effect{Handled: m.doc.Do(action)}
	}
	if screen.MoveTable(m.list.Table(), action) {
		return m.moved()
	}
	return screen.Effect{}
}

// doAlone is Do while the letter is of no list: rows are the lines of the document.
func (m *Message) doAlone(action keymap.Action) screen.Effect {
	switch action {
	case keymap.Mark, keymap.MarkRange, keymap.MarkAll, keymap.Unmark:
		return screen.Effect{Handled: true, Note: "Letters are marked in their list: 5."}
	}
	return screen.Effect{Handled: m.doc.Do(action)}
}

// moved shows the letter that is under the cursor now.
func (m *Message) moved() screen.Effect {
	m.doc.Reset()
	m.shown = ""
	m.prepare()
	return screen.Effect{Handled: true}
}

// Behind names what is to be read when another letter is in sight than was read last.
func (m *Message) Behind() screen.Feed {
	if id := m.ID(); id != 0 && m.detail(id) == nil {
		return screen.FeedLetter
	}
	if exchange, key, ok := m.Target(); ok && m.route(exchange, key) == nil &&
		m.env.Data.Fresh(screen.FeedRoute).Err == nil {
		return screen.FeedRoute
	}
	return ""
}

// turn goes from the letters into the sections, one after the other, and back.
func (m *Message) turn(forward bool) {
	step := 1
	if !forward {
		step = -1
	}
	at := 0 // 0 stands for the letters
	if m.inside {
		at = m.section + 1
	}
	at = (at + step + len(sections) + 1) % (len(sections) + 1)
	if m.inside = at > 0; m.inside {
		m.section = at - 1
	}
	m.prepare()
}

// inList is what Shown says of the letter under the cursor of the list.
const inList = "list"

// Shown names the letter that another view sent to.
func (m *Message) Shown() string {
	if m.alone == 0 {
		return inList
	}
	return strconv.FormatInt(m.alone, 10)
}

// Show shows a letter of the ledger from its beginning, or that under the cursor of the list.
func (m *Message) Show(name string) {
	m.section, m.inside, m.alone = 0, false, screen.Number(name)
	m.moved()
}

// current is the letter in sight; nil when the list has none.
func (m *Message) current() *row {
	if m.alone == 0 {
		return m.list.Current()
	}
	entry := &monitor.LedgerEntry{ID: m.alone}
	if d := m.detail(m.alone); d != nil {
		entry = &d.LedgerEntry
	}
	r := ledgerRow(entry)
	return &r
}

func (m *Message) prepare() {
	r := m.current()
	if r == nil {
		return
	}
	l := m.letter(r)
	if l == nil {
		return
	}
	if text := l.document(m.section); text != m.shown {
		m.shown = text
		m.doc.Set(text)
	}
}

// detail is what the ledger says of a letter, once it was read.
func (m *Message) detail(id int64) *monitor.LedgerDetail {
	if d := m.env.Data.Letter; d != nil && d.ID == id {
		return d
	}
	return nil
}

// Render draws the view.
func (m *Message) Render(w, h int) []string {
	e, r := m.env, m.current()
	if r == nil {
		return []string{"", " " + e.Paint(theme.Dim, "The letter is no longer in the list. esc goes back.")}
	}
	m.prepare()
	l := m.letter(r)
	if l == nil {
		return e.Missing(screen.FeedLetter, r.name(), w)
	}
	if w >= 120 {
		lw := w * 82 / 140
		left := append(m.head(l, lw-1), m.deaths(l, lw-1, 8)...)
		plan := m.plan(r)
		room := max(3, h-len(left)-len(plan))
		left = append(left, widget.Fit(m.document(lw-1, room), lw-1, room)...)
		left = append(left, plan...)
		right := append(m.row(r), m.compare(r, l, w-lw-2)...)
		right = append(append(right, m.same(r)...), m.target(r, l)...)
		return widget.Beside(left, right, lw, w-lw-2, h, e.Paint(theme.Dim, e.Theme.Glyphs.Bar)+" ")
	}
	lines := append(m.head(l, w), m.deaths(l, w, 4)...)
	lines = append(lines, m.compare(r, l, w)...)
	plan := m.plan(r)
	plan = plan[:min(len(plan), 2)]
	room := max(3, h-len(lines)-len(plan))
	lines = append(lines, widget.Fit(m.document(w, room), w, room)...)
	return append(lines, plan...)
}

func (m *Message) head(l *letter, w int) []string {
	text := " id " + widget.CutMiddle(widget.Clean(dash(l.id)), max(8, w/3)) + "   " + widget.Clean(dash(l.kind)) +
		" " + widget.Clean(l.version) + "   " +
		strconv.FormatInt(l.size, 10) + " B"
	lines := []string{widget.Cut(text, w)}
	if l.again != "" {
		lines = append(lines, " "+m.env.Paint(theme.Warn, widget.Cut("▲ "+widget.Clean(l.again), max(1, w-2))))
	}
	return append(lines, "")
}

// deaths are the history as the broker keeps it.
func (m *Message) deaths(l *letter, w, most int) []string {
	e := m.env
	lines := []string{widget.Spread(" "+e.Paint(theme.Dim, "DEATHS"),
		e.Paint(theme.Dim, "time is the first death of its kind"), w-1)}
	if len(l.deaths) == 0 {
		return append(lines, "  none that the broker has written down", "")
	}
	for i, d := range l.deaths {
		if i*2 >= most {
			lines = append(lines, e.Paint(theme.Dim, "  … "+strconv.Itoa(len(l.deaths)-i)+" earlier"))
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
		lines = append(lines, widget.Cut(widget.Clean(text), w),
			widget.Cut(widget.Clean("    ex "+dash(d.Exchange)+"  key "+dash(strings.Join(d.RoutingKeys, ", "))), w))
	}
	return append(lines, "")
}

func (m *Message) document(w, h int) []string {
	tabs := make([]string, len(sections))
	for i, name := range sections {
		tabs[i] = name
		if i == m.section {
			tabs[i] = m.env.Paint(theme.Accent, "["+name+"]")
		}
	}
	state := "tab goes in"
	if m.inside {
		state = m.doc.Status()
	}
	title := widget.Spread(" "+strings.Join(tabs, " · "), m.env.Paint(theme.Dim, widget.Clean(state)), w-1)
	return append([]string{title}, m.doc.Lines(w, max(0, h-1), m.env.Theme)...)
}
