package queue

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// PreviewRows is how many waiting executions a preview reads.
const PreviewRows = 10

// Unread names the feed that the preview of a queue still needs, if any.
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

// Preview is a queue below a wide list: its slot holders, the first waiting executions, and the first problem of
// a holder.
type Preview struct {
	env     *screen.Env
	holders *list.Table[holder]
	waiting *waiting
}

// NewPreview makes a preview of the queue that FeedQueue and FeedLine read.
func NewPreview(env *screen.Env) *Preview {
	p := &Preview{env: env, holders: newHolders(env), waiting: newWaiting(env)}
	p.holders.Focus(false)
	p.waiting.Focus(false)
	return p
}

// Changed takes over new data.
func (p *Preview) Changed(feed screen.Feed) {
	switch d := p.env.Data; {
	case feed == screen.FeedQueue && d.Queue != nil:
		p.holders.Anew(true) // the cursor stays on the first row
		p.holders.SetList(holders(d.Queue))
	case feed == screen.FeedLine && d.Line != nil:
		p.waiting.Anew(true)
		p.waiting.SetList(d.Line.List)
	}
}

// Lines draws the preview of a queue.
func (p *Preview) Lines(id int64, w, h int) []string {
	e := p.env
	switch feed := Unread(e, id); feed {
	case "":
	case screen.FeedLine:
		return e.Missing(feed, "the waiting executions", w)
	default:
		return e.Missing(feed, "the queue", w)
	}
	d, warning := e.Data.Queue, p.warning()
	room := h - len(warning)
	lw := w/2 - 1
	left := []string{" " + e.Dim("SLOT HOLDERS "+screen.Slots(d.Active, d.Limit))}
	if p.holders.Len() > 0 {
		left = append(left, p.holders.Lines(lw, room-1, e.Theme)...)
	}
	right := []string{" " + e.Dim("FIRST WAITING, FIFO")}
	if p.waiting.Len() > 0 {
		right = append(right, p.waiting.Lines(w-lw-2, min(room-1, PreviewRows+1), e.Theme)...)
	}
	return append(widget.Beside(left, right, lw, w-lw-2, room, "  "), warning...)
}

// warning describes the first holder with a problem.
func (p *Preview) warning() []string {
	e := p.env
	for i := range p.holders.List {
		h := &p.holders.List[i]
		note := h.problem(e)
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
