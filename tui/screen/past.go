package screen

import (
	"slices"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/widget"
)

// Gaps is what titles say of charts with unknown minutes.
const Gaps = " (gaps: no engine ran)"

// PutPast stores the last hour. While only the broker answers, the minutes of an earlier reading stay.
func (d *Data) PutPast(p *monitor.Past) {
	for _, minute := range slices.Backward(p.Minutes) {
		d.History.Backfill(SeriesQueued, minute.At, known(minute.Queued, minute.Unseen))
	}
	for _, one := range p.Depth {
		d.History.Backfill(SeriesDead, one.At, float64(one.Ready))
	}
	if old := d.Past; len(p.Minutes) == 0 && old != nil && len(old.Minutes) > 0 {
		kept := *old
		kept.Depth = p.Depth
		p = &kept
	}
	d.Past = p
}

// known is a value of a minute, or widget.Missing.
func known(value float64, unseen bool) float64 {
	if unseen {
		return widget.Missing
	}
	return value
}

// Ended is how many executions ended per minute in the last hour, in n cells. The database records it,
// so every dashboard draws the same; without a record the polls count. Unknown cells are widget.Missing.
func (e *Env) Ended(n int, of func(*monitor.PastMinute) float64) []float64 {
	p := e.Data.Past
	if p == nil || len(p.Minutes) == 0 {
		return e.Data.History.Rates(SeriesDone, time.Hour, n)
	}
	minutes := len(p.Minutes)
	old := int(max(0, e.Now.Sub(p.At)) / time.Minute)
	cells := make([]float64, n)
	for i := range cells {
		from := i * minutes / n
		until := max((i+1)*minutes/n, from+1)
		sum, known := 0.0, 0
		for at := from + old; at < min(until+old, minutes); at++ {
			if !p.Minutes[at].Uncounted {
				sum, known = sum+of(&p.Minutes[at]), known+1
			}
		}
		cells[i] = widget.Missing
		if known > 0 {
			cells[i] = sum / float64(known)
		}
	}
	return cells
}

// Waited is how many dead letters waited for a person in the last hour, in n cells. It is false without
// a ledger.
func (e *Env) Waited(n int) ([]float64, bool) {
	p, deadLetters := e.Data.Past, e.Data.DeadLetters
	known := p != nil && p.DeadLetters && len(p.Minutes) > 0
	counted := deadLetters != nil && deadLetters.Ledger != nil
	if !known && !counted {
		return nil, false
	}
	cells := make([]float64, n)
	for i := range cells {
		cells[i] = widget.Missing
	}
	if known {
		cells = e.Ended(n, func(minute *monitor.PastMinute) float64 { return minute.Waiting })
	}
	if counted && n > 0 {
		cells[n-1] = float64(deadLetters.Ledger.Open.Value)
	}
	return cells, true
}

// EvenCells is the largest number of cells in the room that divides an hour into equal minutes; at
// least six.
func EvenCells(room int) int {
	n := min(max(room, 6), 60)
	for 60%n > 0 {
		n--
	}
	return n
}

// Counted replaces zeros by widget.Missing, so that every drawn bar stands for something.
func Counted(cells []float64) []float64 {
	for i, n := range cells {
		if n == 0 {
			cells[i] = widget.Missing
		}
	}
	return cells
}

// DonePerMinute is how many executions ended within the last minute: by the polls once they cover it,
// before that by the record of the database.
func (e *Env) DonePerMinute() string {
	p := e.Data.Past
	if p == nil || len(p.Minutes) == 0 || e.Data.History.covers(SeriesDone, time.Minute) {
		return e.PerMinute(SeriesDone)
	}
	return e.Num(int64(p.Minutes[len(p.Minutes)-1].Done)) + "/m"
}
