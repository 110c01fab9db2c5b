package deadletters

import (
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// Message is the view of one letter of the list.
type Message struct {
	env     *screen.Env
	list    *DeadLetters
	section int
	// inside is true while the document has the focus: then rows are its lines.
	inside bool
	doc    *jsonview.View
	shown  string // what doc shows
	// read is the letter that was read last, or nil.
	read *letter
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
	if m.alone != 0 {
		return m.alone
	}
	if r := m.list.Current(); r != nil {
		return r.ledger.ID
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
	left = "DLQ › " + r.name
	if m.alone == 0 {
		left = "DLQ › " + strconv.Itoa(m.Table().Cursor()+1) + " of " + strconv.Itoa(m.list.Len()) + " › " + r.name
	}
	if r.died != nil {
		right = "died " + m.env.AgeOf(r.died) + " ago · "
	}
	return left, right + r.reason
}

// letter is the letter in sight, once the ledger was asked for it; else nil.
func (m *Message) letter() *letter {
	if l := m.read; l != nil && l.of == m.env.Data.Letter && l.of.ID == m.ID() {
		return l
	}
	return nil
}

// current is what is known of the letter in sight; nil when the list has none.
func (m *Message) current() *row {
	if m.alone == 0 {
		return m.list.Current()
	}
	if l := m.letter(); l != nil {
		return &l.row
	}
	r := ledgerRow(&monitor.LedgerEntry{ID: m.alone})
	return &r
}

// Changed takes over new data. What is not shown is not read.
func (m *Message) Changed(feed screen.Feed) {
	if d := m.env.Data.Letter; feed == screen.FeedLetter && d != nil && d.ID == m.ID() {
		m.prepare()
	}
}

// prepare reads the letter in sight and puts the section in sight into its view.
func (m *Message) prepare() {
	if d := m.env.Data.Letter; d != nil && d.ID == m.ID() && (m.read == nil || m.read.of != d) {
		m.read = readLetter(d)
	}
	if l := m.letter(); l != nil && l.documents[m.section] != m.shown {
		m.shown = l.documents[m.section]
		m.doc.Set(m.shown)
	}
}

// Acts is what may be done with the letter in sight, or with those that are marked in
// the list it is of.
func (m *Message) Acts() (act.Menu, bool) {
	if m.alone == 0 {
		return m.list.Acts()
	}
	if l := m.letter(); l != nil {
		return act.ForLetter(&l.of.LedgerEntry, m.env.Data.Depth()), true
	}
	return act.Menu{}, false
}

// RelatedExecution is the execution that the letter in sight is about.
func (m *Message) RelatedExecution() (*monitor.Execution, bool) { return m.current().about() }

// Relations is what the letter in sight has to do with.
func (m *Message) Relations() (title string, list []screen.Relation, ok bool) {
	return m.current().relations()
}

// Shows is the letter in sight, with the place in the document that the cursor is at.
func (m *Message) Shows() (screen.Thing, bool) {
	r := m.current()
	if r == nil {
		return screen.Thing{}, false
	}
	thing := r.thing()
	if l := m.letter(); l != nil {
		thing.Value = r.taken(legible(l.of))
	}
	thing.Path, thing.Text, thing.InDocument = m.doc.Value()
	return thing, true
}

// Search looks for a text in the document in sight.
func (m *Message) Search(text string) int { return m.doc.Search(text) }

// Query is the text that is looked for.
func (m *Message) Query() string { return m.doc.Query() }

// Hide masks what was revealed.
func (m *Message) Hide() { m.doc.Hide() }

// Leave takes the focus back from the document.
func (m *Message) Leave() bool {
	was := m.inside
	m.inside = false
	return was
}

// folding are the actions that the document takes while rows are letters.
var folding = []keymap.Action{
	keymap.Left, keymap.Right, keymap.FoldAll, keymap.Wrap, keymap.Reveal, keymap.NextMatch, keymap.PrevMatch,
	keymap.HalfDown, keymap.HalfUp,
}

// Do carries out an action. Rows are letters, until tab leads into the document or where the letter
// is of no list.
func (m *Message) Do(action keymap.Action) screen.Effect {
	marks := []keymap.Action{keymap.Mark, keymap.MarkRange, keymap.MarkAll, keymap.Unmark}
	switch {
	case action == keymap.NextPane:
		m.turn(1)
	case action == keymap.PrevPane:
		m.turn(-1)
	case action == keymap.Open:
		if x, ok := m.current().about(); ok {
			return screen.OpenExecution(x.ID)
		}
		return screen.Effect{Handled: true, Note: "There is no execution behind it."}
	case action == keymap.GroupBy:
		return m.list.Do(action)
	case m.alone != 0 && slices.Contains(marks, action):
		return screen.Effect{Handled: true, Note: "Letters are marked in their list: 5."}
	case action == keymap.Mark && m.alone == 0:
		m.Table().Mark()
		m.moved()
	case m.alone != 0 || m.inside || slices.Contains(folding, action):
		return screen.Effect{Handled: m.doc.Do(action)}
	case screen.MoveTable(m.Table(), action):
		m.moved()
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

// moved shows the letter that is under the cursor now.
func (m *Message) moved() {
	m.doc.Reset()
	m.shown = ""
	m.prepare()
}

// Behind names what is to be read when another letter is in sight than was read last.
func (m *Message) Behind() screen.Feed {
	if d, id := m.env.Data.Letter, m.ID(); id != 0 && (d == nil || d.ID != id) {
		return screen.FeedLetter
	}
	exchange, key, ok := m.Target()
	if ok && m.route(exchange, key) == nil && m.env.Data.Fresh(screen.FeedRoute).Err == nil {
		return screen.FeedRoute
	}
	return ""
}

// turn goes from the letters into the sections, one after the other, and back.
func (m *Message) turn(step int) {
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
