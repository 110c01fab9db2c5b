package inquiries

import "github.com/attune-go/attune/tui/screen"

// Thing is the question of a row.
func (v *Inquiries) Thing(row int) screen.Thing {
	r := v.rows[row]
	thing := screen.Numbered("inquiry", r.ID, "inquiry", "inquiry", r)
	thing.Execution = r.Execution
	return thing
}

// Shows is the question that takes the whole view.
func (v *Inquiries) Shows() (screen.Thing, bool) {
	d := v.current()
	if !v.detail || d == nil {
		return screen.Thing{}, false
	}
	thing := screen.Numbered("inquiry", d.ID, "inquiry", "inquiry", d)
	thing.Execution = d.Execution
	return thing, true
}

// Beyond says that further questions match.
func (v *Inquiries) Beyond() string {
	if d := v.env.Data.Inquiries; d != nil && (d.Next != "" || d.Bounded) {
		return "more questions may match than are read"
	}
	return ""
}
