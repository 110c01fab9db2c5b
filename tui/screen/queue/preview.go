package queue

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// PreviewRows is how much of a line a preview asks for.
const PreviewRows = 10

// Unread names what is to be read for the preview of a queue; empty when nothing is.
func Unread(e *screen.Env, id int64) screen.Feed {
	switch {
	case e.Data.Queue == nil || e.Data.Queue.ID != id:
		return screen.FeedQueue
	case e.Data.Line == nil || e.Data.Line.Queue != id || e.Data.Line.End:
		return screen.FeedLine
	default:
		return ""
	}
}

// Preview is a queue below a wide list: who holds its slots, who is first in line, and
// what is wrong with a holder.
type Preview struct {
	env   *screen.Env
	held  *list.Table[holder]
	first *line
}

// NewPreview makes a preview of what is read as Queue and Line.
func NewPreview(env *screen.Env) *Preview {
	p := &Preview{env: env, held: newHolders(env), first: newLine(env)}
	p.held.Focus(false)
	p.first.Focus(false)
	return p
}

// Changed takes over new data.
func (p *Preview) Changed(feed screen.Feed) {
	switch d := p.env.Data; {
	case feed == screen.FeedQueue && d.Queue != nil:
		p.held.Anew(true) // its cursor stays on the first row, whichever that is
		p.held.SetList(held(d.Queue))
	case feed == screen.FeedLine && d.Line != nil:
		p.first.Anew(true)
		p.first.SetList(d.Line.List)
	}
}

// Lines draws the preview of a queue.
func (p *Preview) Lines(id int64, w, h int) []string {
	e := p.env
	switch feed := Unread(e, id); feed {
	case "":
	case screen.FeedLine:
		return e.Missing(feed, "the line", w)
	default:
		return e.Missing(feed, "it", w)
	}
	d, warning := e.Data.Queue, p.warning()
	room := h - len(warning)
	lw := w/2 - 1
	left := []string{" " + e.Dim("SLOT HOLDERS "+screen.Slots(d.Active, d.Limit))}
	if p.held.Len() > 0 {
		left = append(left, p.held.Lines(lw, room-1, e.Theme)...)
	}
	right := []string{" " + e.Dim("HEAD OF LINE, FIFO")}
	if p.first.Len() > 0 {
		right = append(right, p.first.Lines(w-lw-2, min(room-1, PreviewRows+1), e.Theme)...)
	}
	return append(widget.Beside(left, right, lw, w-lw-2, room, "  "), warning...)
}

// warning is a sentence about the first holder with which something is wrong.
func (p *Preview) warning() []string {
	e := p.env
	for i := range p.held.List {
		h := &p.held.List[i]
		note := h.complaint(e)
		if note == "" {
			continue
		}
		text := " " + e.Theme.Glyphs.Warning + " " + h.key() + " holds a slot for " + e.AgeOf(&h.Since) +
			": " + note + "."
		if h.Health == monitor.WorkerStale {
			text += " The slot stays taken until the worker is back or counts as lost."
		}
		return []string{e.Paint(theme.Warn, text)}
	}
	return nil
}
