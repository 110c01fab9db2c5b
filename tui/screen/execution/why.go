package execution

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// explain turns to all that is known of why the execution waits, and back.
func (x *Execution) explain() screen.Effect {
	d := x.current()
	switch {
	case d == nil:
		return screen.Effect{Handled: true}
	case len(d.Why) == 0 && !x.why:
		return screen.Effect{Handled: true, Note: "It waits for nothing: it is " + widget.Clean(d.Status) + "."}
	}
	x.why, x.scroll = !x.why, 0
	return screen.Effect{Handled: true}
}

// Leave closes the reasons.
func (x *Execution) Leave() bool {
	was := x.why
	x.why, x.scroll = false, 0
	return was
}

// whyLines is every sentence of why it waits.
func (x *Execution) whyLines(d *monitor.ExecutionDetail, w, h int) []string {
	lines := []string{" " + x.env.State(d.Status) + "  " + widget.Clean(d.ActionRef), ""}
	if len(d.Why) == 0 {
		lines = append(lines, " It waits for nothing any more.")
	}
	lines = append(lines, x.sentences(d.Why, w, 1<<20)...)
	x.visible = h - 1
	x.scroll = max(0, min(x.scroll, len(lines)-x.visible))
	shown := lines[x.scroll:min(len(lines), x.scroll+x.visible)]
	foot := x.env.Paint(theme.Dim, " "+strconv.Itoa(len(lines))+" lines · W or esc closes")
	return append(widget.Fit(shown, w, x.visible), foot)
}
