package app

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// overlay is a layer above the open view: a dialog, the help, or an input line. The topmost one takes the keys.
type overlay interface {
	// scope names the keys that work. Without a scope the overlay takes every key as text.
	scope() keymap.Scope
	// key takes a key with its action in the scope; None if it has no meaning there.
	key(m *Model, action keymap.Action, msg tea.KeyMsg) tea.Cmd
	// draw draws the overlay on the layers below it.
	draw(m *Model, f *frame)
	// modal reports whether nothing below may change: results are held until the overlay closes. Only the topmost
	// modal overlay is drawn. In a window that is too small it takes only the key that leaves it.
	modal() bool
	// closed is called after the overlay was removed.
	closed(m *Model)
}

// layer is the base of overlays that are not modal.
type layer struct{}

func (layer) scope() keymap.Scope { return "" }
func (layer) modal() bool         { return false }
func (layer) closed(*Model)       {}

// dialog is the base of modal overlays.
type dialog struct{ layer }

func (dialog) modal() bool { return true }

// top is the topmost overlay, or nil.
func (m *Model) top() overlay {
	if len(m.overlays) == 0 {
		return nil
	}
	return m.overlays[len(m.overlays)-1]
}

func (m *Model) modal() bool {
	top := m.top()
	return top != nil && top.modal()
}

func (m *Model) push(o overlay) { m.overlays = append(m.overlays, o) }

// replace shows the next step of a dialog in place of the topmost overlay.
func (m *Model) replace(o overlay) { m.overlays[len(m.overlays)-1] = o }

// pop closes the topmost overlay. After the last dialog it applies the held results.
func (m *Model) pop() {
	top := m.top()
	m.overlays = m.overlays[:len(m.overlays)-1]
	top.closed(m)
	if m.modal() {
		return
	}
	m.tick()
	for _, f := range feeds {
		if held, ok := m.held[f.name]; ok {
			delete(m.held, f.name)
			m.apply(f.name, held)
		}
	}
}

// closeDialog closes all steps of the open dialog.
func (m *Model) closeDialog() {
	for m.modal() {
		m.pop()
	}
}

// frame is the content of a window. The overlays draw on it, the topmost one last.
type frame struct {
	// left and right are the texts of the title rule.
	left, right   string
	body          []string
	message, keys string
	// covered leaves no room for a report. armed is true while an act is confirmed or runs.
	covered, armed bool
}

func (m *Model) compose() *frame {
	h := m.bodyHeight()
	left, right := m.screen().Title()
	f := &frame{
		left: m.crumbs(left, m.width-12), right: right, body: widget.Fit(m.body(m.width, h), m.width, h),
		message: m.messageLine(), keys: m.keysOf(m.keymap.BottomLine(m.view, m.useful)),
	}
	for _, o := range m.overlays {
		if !o.modal() || o == m.top() {
			o.draw(m, f)
		}
	}
	if toast := m.newest(); toast != nil && !f.covered {
		box := toast.Lines(m.width-2, h, m.env.Theme)
		f.body = widget.Overlay(f.body, box, m.width-1-widget.Width(box[0]), h-len(box), m.width, m.env.Theme)
	}
	return f
}

// maxDialog is the largest width of a dialog; longer lines are hard to read.
const maxDialog = 96

// box describes a dialog.
type box struct {
	title, note string
	role        theme.Role
	// width is the wanted width; 0 means the largest one.
	width int
	// unused are actions of the scope that have no use now; their keys are not named.
	unused []keymap.Action
	// lines draws the content, w cells wide and at most h lines high.
	lines func(w, h int) []string
}

// boxFrame is the width of the frame.
const boxFrame = 4

// boxRoom is the size of the content of the largest dialog.
func (m *Model) boxRoom() (w, h int) { return min(m.width-2, maxDialog) - boxFrame, m.bodyHeight() - 2 }

// box draws a dialog on the body, with the keys of its scope below.
func (f *frame) box(m *Model, scope keymap.Scope, b box) {
	th := m.env.Theme
	w, h := m.boxRoom()
	if b.width > 0 {
		w = min(w, b.width)
	}
	lines := b.lines(w, h)
	drawn := widget.Box(b.title, b.note, widget.Fit(lines, w, min(len(lines), h)), w+boxFrame, b.role, th)
	x, y := (m.width-widget.Width(drawn[0]))/2, max(0, (len(f.body)-len(drawn))/2)
	f.body = widget.Overlay(widget.Fade(f.body, th), drawn, x, y, m.width, th)
	keys := m.keymap.BottomLine(scope, func(k keymap.Binding) bool { return !slices.Contains(b.unused, k.Action) })
	f.keys, f.covered = m.keysOf(keys), true
}

// menu is a dialog that chooses one line by its letter or with the cursor.
type menu struct {
	dialog

	keys  keymap.Scope
	title string
	list  *widget.Menu
	// choose carries out the line at an index.
	choose func(m *Model, at int) tea.Cmd
	// note says why a line cannot be chosen.
	note string
}

// noteLines is the height of the note.
const noteLines = 2

func (o *menu) scope() keymap.Scope { return o.keys }

func (o *menu) key(m *Model, action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	_, h := m.boxRoom()
	defer func() { o.list.Fit(h - noteLines) }()
	o.note = ""
	switch {
	case action == keymap.RowDown:
		o.list.Move(1)
	case action == keymap.RowUp:
		o.list.Move(-1)
	case action == keymap.Back:
		m.closeDialog()
	case action == keymap.Choose, !msg.Paste && o.list.Select(msg.String()):
		return o.take(m)
	}
	return nil
}

// take chooses the line under the cursor, if possible.
func (o *menu) take(m *Model) tea.Cmd {
	line, ok := o.list.Chosen()
	if ok && line.Not == "" {
		return o.choose(m, o.list.Cursor())
	}
	if ok {
		o.note = line.Label + ": " + line.Not
	}
	return nil
}

// draw draws the menu as narrow as possible, so that the rows stay visible.
func (o *menu) draw(m *Model, f *frame) {
	th, title := m.env.Theme, widget.Clean(o.title)
	f.box(m, o.keys, box{
		title: title, role: theme.Accent,
		width: max(o.list.Width(), widget.Width(title)+4, widget.Width(o.note)+2),
		lines: func(w, h int) []string {
			lines := o.list.Lines(w, h-noteLines, th)
			if o.note != "" {
				lines = append(lines, "", th.Paint(theme.Warn, widget.Cut("▲ "+widget.Clean(o.note), w)))
			}
			return lines
		},
	})
}
