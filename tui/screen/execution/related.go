package execution

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Relations is what the execution has to do with.
func (x *Execution) Relations() (title string, list []screen.Relation, ok bool) {
	d := x.current()
	if d == nil {
		return "", nil, false
	}
	list = screen.ExecutionRelations(&d.Execution, x.family())
	for i := range list {
		if list[i].Label == "enforcement" && list[i].Not != "" && d.Enforcement != nil {
			list[i].Not, list[i].To = "", screen.OpenRecordID(screen.RecordEnforcement, *d.Enforcement)
			list[i].Help = strconv.FormatInt(*d.Enforcement, 10)
		}
	}
	return "execution " + strconv.FormatInt(d.ID, 10), list, true
}

// side is the right pane of a wide screen.
func (x *Execution) side(d *monitor.ExecutionDetail, w, h int) []string {
	e := x.env
	lines := []string{widget.Spread(e.Paint(theme.Dim, "RELATED"), e.Paint(theme.Dim, "o then a letter"), w-1), ""}
	_, list, _ := x.Relations()
	for _, r := range list {
		text := widget.Clean(r.Help)
		if r.Not != "" {
			text = e.Paint(theme.Dim, "-")
		}
		lines = append(lines, e.Paint(theme.Accent, r.Key)+" "+e.Paint(theme.Dim, widget.Left(r.Label, 12))+" "+text)
	}
	tree := x.xray(w, max(0, h-len(lines)-8))
	lines = append(lines, tree...)
	return append(lines, x.times(d)...)
}

// xray is the beginning of the tree around the execution.
func (x *Execution) xray(w, h int) []string {
	e, f := x.env, x.family()
	if f == nil || len(f.Tree) < 2 || h < 4 {
		return nil
	}
	lines := []string{"", widget.Spread(e.Paint(theme.Dim, "XRAY"), e.Paint(theme.Dim, "x opens it"), w-1)}
	at := 0
	for i := range f.Tree {
		if f.Tree[i].ID == x.id {
			at = i
		}
	}
	room := h - 3
	from := max(0, min(at-room/2, len(f.Tree)-room))
	for i := from; i < min(len(f.Tree), from+room); i++ {
		r := &f.Tree[i]
		mark := " "
		if r.ID == x.id {
			mark = e.Theme.Glyphs.Cursor
		}
		look := e.Theme.Of(r.Status)
		name := widget.Blank(2*min(r.Depth, 8)) + strconv.FormatInt(r.ID, 10) + " " + widget.Clean(r.ActionRef)
		lines = append(lines, mark+widget.Left(name, max(10, w-22))+" "+e.Paint(look.Role, look.Glyph+" "+widget.Left(widget.Clean(r.Status), 10))+
			widget.Right(widget.Age(e.Lasted(&r.Execution)), 7))
	}
	if n := len(f.Tree) - room; n > 0 {
		lines = append(lines, e.Paint(theme.Dim, " "+strconv.Itoa(n)+" more"))
	}
	return lines
}

func (x *Execution) times(d *monitor.ExecutionDetail) []string {
	e := x.env
	line := func(name, value string) string { return e.Paint(theme.Dim, widget.Left(name, 13)) + value }
	attempt := widget.Unknown
	if d.Attempt != nil {
		attempt = strconv.FormatInt(*d.Attempt, 10)
	}
	return []string{
		"", e.Paint(theme.Dim, "TIMES"), "",
		line("created", d.Created.UTC().Format("2006-01-02 15:04:05.000Z")),
		line("updated", d.Updated.UTC().Format("2006-01-02 15:04:05.000Z")),
		line("hand-overs", attempt),
	}
}
