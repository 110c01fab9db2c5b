package overview

import (
	"strconv"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/widget"
)

// part is a list of the wide view with a cursor of its own.
type part int

const (
	findings part = iota
	topQueues
	workers
	brokerQueues
	parts
)

// newTables makes the tables of the wide view.
func (o *Overview) newTables() {
	o.queues = list.NewTable(o.env, func(q *queue) string { return strconv.FormatInt(q.ID, 10) }, []list.Field[queue]{
		list.Text("ACTION / GROUP", 10, func(q *queue) string { return q.name }).Grow().Middle(),
		list.Number("QUEUED", 8, func(q *queue) int64 { return q.Queued }),
		list.Text("RUN/MAX", 8, func(q *queue) string { return screen.Slots(q.Active, q.Limit) }).Right(),
		list.Age("HEAD", 7, func(q *queue) *time.Time { return q.Oldest }),
		list.Spark("TREND 15m", 12, func(q *queue) string { return screen.QueueSeries(q.ID) }),
	})
	number := func(title string, width int, n func(q *monitor.BrokerQueue) int64) list.Field[monitor.BrokerQueue] {
		return list.Draw(title, width, func(e *screen.Env, q *monitor.BrokerQueue) widget.Cell {
			return widget.Cell{Text: e.BrokerNum(*q, n(q))}
		}).Right()
	}
	name := func(q *monitor.BrokerQueue) string { return q.Name }
	o.broker = list.NewTable(o.env, name, []list.Field[monitor.BrokerQueue]{
		list.Text("QUEUE", 20, name).Grow().Middle(),
		number("READY", 9, func(q *monitor.BrokerQueue) int64 { return q.Ready }),
		number("UNACK", 7, func(q *monitor.BrokerQueue) int64 { return q.Unacked }),
		number("CONS", 7, func(q *monitor.BrokerQueue) int64 { return q.Consumers }),
		list.Text("AGE HEAD", 8, o.headAge).Right(),
	})
	id := func(w *worker) string { return strconv.FormatInt(w.ID, 10) }
	o.workers = list.NewTable(o.env, id, []list.Field[worker]{
		list.Sign(func(w *worker) string { return string(w.health) }),
		list.Text("WORKER", 10, func(w *worker) string { return w.Name }).Grow().Middle(),
		list.Text("SLOTS", 6, func(w *worker) string {
			if w.Assigned == nil {
				return widget.Unknown
			}
			return screen.Slots(*w.Assigned, w.Capacity)
		}).Right(),
		list.Age("HB", 7, func(w *worker) *time.Time { return w.Heartbeat }),
		list.Draw("TREND", 10, func(e *screen.Env, w *worker) widget.Cell {
			if w.health == monitor.WorkerActive || w.health == monitor.WorkerBusy {
				return widget.Cell{Text: e.Spark(screen.WorkerSeries(w.ID), 15*time.Minute, 8)}
			}
			return widget.Cell{Text: string(w.health)}
		}),
	})
	o.tables = [parts]*widget.Table{topQueues: o.queues.Table, workers: o.workers.Table, brokerQueues: o.broker.Table}
	o.focus(findings)
}

// here is the part in focus; a narrow view has only findings.
func (o *Overview) here() part {
	if !o.trends() {
		return findings
	}
	return o.part
}

// turn moves the focus by so many parts, over parts without rows.
func (o *Overview) turn(by part) {
	to := (o.part + by) % parts
	for to != findings && o.tables[to].Cursor() < 0 {
		to = (to + by) % parts
	}
	o.focus(to)
}

func (o *Overview) focus(to part) {
	o.part = to
	for of, table := range o.tables {
		if table != nil {
			table.Focus(part(of) == to)
		}
	}
}

// title is the heading of a part, in the accent colour if it has the focus.
func (o *Overview) title(of part, feed screen.Feed, text string) string {
	return o.env.PaneHead(o.here() == of && o.trends(), feed, text)
}
