package brokerqueues

import (
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Relations is what the queue under the cursor has to do with.
func (v *Broker) Relations() (title string, list []screen.Relation, ok bool) {
	at := v.table.Cursor()
	if at < 0 || at >= len(v.rows) {
		return "", nil, false
	}
	r := &v.rows[at]
	name := filter.Quote(r.BrokerQueue.Name)
	worker := screen.Relation{Key: "w", Label: "worker", Not: "it is no queue of a worker"}
	executions := screen.Relation{Key: "x", Label: "executions", Not: "it is no queue of a worker"}
	switch {
	case r.orphan:
		worker.Not, executions.Not = "its worker has no row", "its worker has no row"
	case r.worker != "":
		quoted := filter.Quote(r.worker)
		worker = screen.Relation{Key: "w", Label: "worker", Help: r.worker, To: screen.OpenList(keymap.InWorkers, quoted)}
		executions = screen.Relation{Key: "x", Label: "executions", Help: "given to " + r.worker, To: screen.OpenList(keymap.InExecutions, "worker:"+quoted)}
	}
	letters := screen.Relation{Key: "d", Label: "dead letters", Help: "that died in it", To: screen.OpenList(keymap.InDeadLetters, "queue:"+name)}
	if r.BrokerQueue.Name == monitor.DeadLetterQueue {
		letters.Help, letters.To.Filter = "that it holds, or held", ""
	}
	return r.BrokerQueue.Name, []screen.Relation{
		worker, executions, letters,
		{Key: "n", Label: "alerts", Help: "that are about it", To: screen.OpenList(keymap.InAlerts, name)},
	}, true
}
