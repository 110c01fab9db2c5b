package queue

import (
	"github.com/attune-go/attune/core/monitor"
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
func Preview(e *screen.Env, id int64, w, h int) []string {
	switch feed := Unread(e, id); feed {
	case "":
	case screen.FeedLine:
		return e.Missing(feed, "the line", w)
	default:
		return e.Missing(feed, "it", w)
	}
	d := e.Data.Queue
	held, first := newHolders(e), newLine(e)
	held.set(d)
	first.set(e.Data.Line)
	held.table.Focus(false)
	first.table.Focus(false)
	warning := held.warning()
	room := h - len(warning)
	lw := w/2 - 1
	left := []string{" " + e.Paint(theme.Dim, "SLOT HOLDERS "+screen.Slots(d.Active, d.Limit))}
	if held.Len() > 0 {
		left = append(left, held.table.Lines(lw, room-1, e.Theme)...)
	}
	right := []string{" " + e.Paint(theme.Dim, "HEAD OF LINE, FIFO")}
	if first.Len() > 0 {
		right = append(right, first.table.Lines(w-lw-2, min(room-1, PreviewRows+1), e.Theme)...)
	}
	return append(widget.Beside(left, right, lw, w-lw-2, room, "  "), warning...)
}

// warning is a sentence about the first holder with which something is wrong.
func (h *holders) warning() []string {
	for i := range h.rows {
		r := &h.rows[i]
		note := h.complaint(r)
		if note == "" {
			continue
		}
		text := " " + h.env.Theme.Glyphs.Warning + " " + h.Key(i) + " holds a slot for " + widget.Age(h.env.Since(r.Since)) + ": " + note + "."
		if r.Health == monitor.WorkerStale {
			text += " The slot stays taken until the worker is back or counts as lost."
		}
		return []string{h.env.Paint(theme.Warn, text)}
	}
	return nil
}
