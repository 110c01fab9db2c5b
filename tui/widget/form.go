package widget

import (
	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/theme"
)

// FormField is one value that a form asks for.
type FormField struct {
	Name, Label, Value, Hint string
	// Check refuses a value in a few words; nil takes every value.
	Check func(value string) error
}

// Form asks for values, one a line.
type Form struct {
	fields []FormField
	inputs []*Input
	focus  int
	// problem is why the field in focus was not taken.
	problem string
}

// maxFormValue bounds the length of a value.
const maxFormValue = 200

// NewForm makes a form with the first field in focus.
func NewForm(fields []FormField) *Form {
	f := &Form{fields: fields, inputs: make([]*Input, len(fields))}
	for i, field := range fields {
		f.inputs[i] = NewInput(field.Value, maxFormValue)
	}
	return f
}

// Move puts the focus n fields further, around the end.
func (f *Form) Move(n int) {
	f.focus = (f.focus + n + len(f.fields)) % len(f.fields)
	f.problem = ""
}

// Update takes a key for the field in focus.
func (f *Form) Update(msg tea.KeyMsg) {
	f.inputs[f.focus].Update(msg)
	f.problem = ""
}

// Next goes to the next field if this one is taken, and reports true when the
// last one was and all of them are.
func (f *Form) Next() bool {
	if f.focus < len(f.fields)-1 {
		if f.check(f.focus) {
			f.Move(1)
		}
		return false
	}
	for i := range f.fields {
		if !f.check(i) {
			return false
		}
	}
	return true
}

func (f *Form) check(i int) bool {
	if f.fields[i].Check == nil {
		return true
	}
	if err := f.fields[i].Check(f.inputs[i].Value()); err != nil {
		f.focus, f.problem = i, err.Error()
		return false
	}
	return true
}

// Values are the texts by the names of their fields.
func (f *Form) Values() map[string]string {
	values := make(map[string]string, len(f.fields))
	for i, field := range f.fields {
		values[field.Name] = f.inputs[i].Value()
	}
	return values
}

// Lines draws the form w cells wide: the fields, then what is to be said of the
// one in focus.
func (f *Form) Lines(w int, th *theme.Theme) []string {
	label := 0
	for _, field := range f.fields {
		label = max(label, Width(field.Label))
	}
	label = min(label, w/2)
	out := make([]string, 0, len(f.fields)+2)
	for i, field := range f.fields {
		mark := " "
		if i == f.focus {
			mark = th.Glyphs.Cursor
		}
		out = append(out, mark+" "+Left(field.Label, label)+"  "+f.inputs[i].View(max(4, w-label-4), i == f.focus, th))
	}
	if f.problem != "" {
		return append(out, "", th.Paint(theme.Bad, "✗ "+Cut(Clean(f.problem), w-2)))
	}
	return append(out, "", th.Paint(theme.Dim, "  "+f.fields[f.focus].Hint))
}
