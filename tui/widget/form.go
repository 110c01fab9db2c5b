package widget

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/tui/theme"
)

// FormField is one field of a form.
type FormField struct {
	Name, Label, Value, Hint string
	// Check validates a value with a short error; nil accepts every value.
	Check func(value string) error
	// Choices are the values to choose from; empty means a text. Optional also allows none of them.
	Choices  []string
	Optional bool
	// Secret hides the value while it is typed.
	Secret bool
	// Replace makes the first typed letter replace the value, as numbers need it.
	Replace bool
	// Limit bounds the length of the value; 0 means 200 characters.
	Limit int
}

// Form shows one field a line, and its error below it.
type Form struct {
	fields []FormField
	inputs []*Input
	// chosen is the index of the choice of each field; -1 means none.
	chosen []int
	// typed collects letters that search the choices of the field in focus.
	typed string
	// selected marks the fields whose value the next letter replaces.
	selected []bool
	focus    int
	// problems are the errors by field; general concerns the whole form.
	problems map[int]string
	general  string
}

// maxFormValue bounds a value without a limit of its own.
const maxFormValue = 200

// NewForm makes a form with the focus on the first field.
func NewForm(fields []FormField) *Form {
	f := &Form{
		fields: fields, inputs: make([]*Input, len(fields)), chosen: make([]int, len(fields)),
		problems: map[int]string{},
		selected: make([]bool, len(fields)),
	}
	for i, field := range fields {
		limit := field.Limit
		if limit == 0 {
			limit = maxFormValue
		}
		f.inputs[i] = NewInput(field.Value, limit)
		f.inputs[i].Hide(field.Secret)
		f.chosen[i] = slices.Index(field.Choices, field.Value)
	}
	f.Select()
	return f
}

// Select marks the values of Replace fields, so that typing replaces them.
func (f *Form) Select() {
	for i, field := range f.fields {
		f.selected[i] = field.Replace && f.inputs[i].Value() != ""
	}
}

// Move moves the focus by n fields, wrapping around.
func (f *Form) Move(n int) { f.focus, f.typed = (f.focus+n+len(f.fields))%len(f.fields), "" }

// Update passes a key to the field in focus. Among choices the arrows step, and letters search for a choice that
// begins with them.
func (f *Form) Update(msg tea.KeyMsg) {
	delete(f.problems, f.focus)
	f.general = ""
	if choices := f.fields[f.focus].Choices; len(choices) > 0 {
		f.choose(msg, choices)
		return
	}
	if f.selected[f.focus] && (msg.Type == tea.KeyRunes || msg.Type == tea.KeySpace) {
		f.inputs[f.focus].Clear()
	}
	f.selected[f.focus] = false
	f.inputs[f.focus].Update(msg)
}

func (f *Form) choose(msg tea.KeyMsg, choices []string) {
	lowest := 0
	if f.fields[f.focus].Optional {
		lowest = -1
	}
	now, typed := &f.chosen[f.focus], f.typed
	f.typed = ""
	switch {
	case msg.Paste:
	case msg.Type == tea.KeyRight || msg.Type == tea.KeySpace:
		if *now++; *now >= len(choices) {
			*now = lowest
		}
	case msg.Type == tea.KeyLeft:
		if *now--; *now < lowest {
			*now = len(choices) - 1
		}
	case msg.Type == tea.KeyBackspace:
		*now = -1
	case msg.Type == tea.KeyRunes && len(msg.Runes) == 1:
		f.typed = typed + strings.ToLower(string(msg.Runes))
		f.jump(choices, now)
	}
}

// jump selects the choice that begins with the typed letters. The same letter again goes to the next one.
func (f *Form) jump(choices []string, now *int) {
	wanted, from := f.typed, 0
	if first, _ := utf8.DecodeRuneInString(wanted); strings.Trim(wanted, string(first)) == "" {
		wanted, from = string(first), 1
	}
	for n := from; n < len(choices)+from; n++ {
		at := (*now + n + len(choices)) % len(choices)
		if strings.HasPrefix(strings.ToLower(choices[at]), wanted) {
			*now = at
			return
		}
	}
	f.problems[f.focus] = fmt.Sprintf("%q is none of %s", f.typed, strings.Join(choices, ", "))
}

// Next moves on if the field is valid. On the last field it reports whether all fields are valid.
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
	delete(f.problems, i)
	if f.fields[i].Check == nil {
		return true
	}
	if err := f.fields[i].Check(f.value(i)); err != nil {
		f.focus, f.typed, f.problems[i] = i, "", err.Error()
		return false
	}
	return true
}

// Refuse shows problems by field name and moves the focus to the first of these fields. Unknown names concern the
// whole form.
func (f *Form) Refuse(problems map[string]string) {
	f.problems, f.general, f.typed = map[int]string{}, "", ""
	var general []string
	for name, text := range problems {
		at := slices.IndexFunc(f.fields, func(field FormField) bool { return field.Name == name })
		if at < 0 {
			general = append(general, text)
			continue
		}
		if len(f.problems) == 0 || at < f.focus {
			f.focus = at
		}
		f.problems[at] = text
	}
	slices.Sort(general)
	f.general = strings.Join(general, "; ")
}

func (f *Form) value(i int) string {
	if len(f.fields[i].Choices) == 0 {
		return f.inputs[i].Value()
	}
	if f.chosen[i] < 0 {
		return ""
	}
	return f.fields[i].Choices[f.chosen[i]]
}

// Values are the values by field name.
func (f *Form) Values() map[string]string {
	values := make(map[string]string, len(f.fields))
	for i, field := range f.fields {
		values[field.Name] = f.value(i)
	}
	return values
}

// Lines draws the form w cells wide and at most h lines high: the fields with their problems, then the hint of the
// field in focus, which is always visible.
func (f *Form) Lines(w, h int, th *theme.Theme) []string {
	label := 0
	for _, field := range f.fields {
		label = max(label, Width(Clean(field.Label)))
	}
	label = min(label, w/3)
	var out []string
	at, end := 0, 0
	for i := range f.fields {
		if i == f.focus {
			at = len(out)
		}
		out = append(out, f.line(i, label, w, th)...)
		if i == f.focus {
			end = len(out)
		}
	}
	foot := f.foot(w, th)
	room := max(1, h-len(foot))
	if len(out) > room {
		from := max(0, min(at, end-room, len(out)-room))
		if at >= from+room || end > from+room {
			from = min(max(0, end-room), at)
		}
		out = out[from:min(len(out), from+room)]
	}
	return append(out, foot...)
}

// line draws one field and its problem below it.
func (f *Form) line(i, label, w int, th *theme.Theme) []string {
	field, mark := &f.fields[i], " "
	if i == f.focus {
		mark = th.Glyphs.Cursor
	}
	room := max(4, w-label-4)
	value := f.inputs[i].View(room, i == f.focus, th)
	if len(field.Choices) > 0 {
		value = f.choice(i, room, th)
	}
	lines := []string{mark + " " + Left(Clean(field.Label), label) + "  " + value}
	if problem := f.problems[i]; problem != "" {
		for _, part := range Wrap("✗ "+problem, room) {
			lines = append(lines, Blank(label+4)+th.Paint(theme.Bad, part))
		}
	}
	return lines
}

func (f *Form) choice(i, w int, th *theme.Theme) string {
	if i != f.focus {
		return Left(Clean(f.value(i)), w)
	}
	text := "none"
	if f.chosen[i] >= 0 {
		text = Clean(f.value(i))
	}
	return th.Paint(theme.Accent, "‹ ") + Cut(text, max(1, w-4)) + th.Paint(theme.Accent, " ›")
}

// foot draws the problem of the whole form and the hint of the field in focus.
func (f *Form) foot(w int, th *theme.Theme) []string {
	hint := f.fields[f.focus].Hint
	if len(f.fields[f.focus].Choices) > 0 {
		hint += "  (← → choose)"
	}
	if f.selected[f.focus] {
		hint += "; typing replaces " + f.value(f.focus)
	}
	lines := []string{""}
	if f.general != "" {
		lines = append(lines, th.Paint(theme.Bad, Cut("✗ "+Clean(f.general), w)))
	}
	for _, part := range Wrap(hint, max(8, w-2)) {
		lines = append(lines, th.Paint(theme.Dim, "  "+part))
	}
	return lines[:min(len(lines), 4)]
}
