package alerts

import (
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Relations is what the alert or check under the cursor has to do with.
func (v *Alerts) Relations() (title string, list []screen.Relation, ok bool) {
	r := v.current()
	if r == nil {
		return "", nil, false
	}
	name, kind := "", ""
	if r.alert != nil {
		name, kind = r.alert.Target, r.alert.Of
	}
	action, _, _ := strings.Cut(name, " ")
	queue := screen.Relation{Key: "q", Label: "queue", Not: "it is about none"}
	worker := screen.Relation{Key: "w", Label: "worker", Not: "it is about none"}
	executions := screen.Relation{Key: "x", Label: "executions", Not: "it is about none by name"}
	letters := screen.Relation{Key: "d", Label: "dead letters", Help: "all", To: screen.OpenList(keymap.InDeadLetters, "")}
	switch kind {
	case "queue":
		queue = screen.Relation{Key: "q", Label: "queue", Help: name, To: screen.OpenList(keymap.InQueues, action)}
		executions = screen.Relation{Key: "x", Label: "executions", Help: "of " + action, To: screen.OpenList(keymap.InExecutions, "action:"+action)}
		letters.Help, letters.To.Open.Filter = "of "+action, "action:"+action
	case "worker":
		quoted := filter.Quote(name)
		worker = screen.Relation{Key: "w", Label: "worker", Help: name, To: screen.OpenList(keymap.InWorkers, quoted)}
		executions = screen.Relation{Key: "x", Label: "executions", Help: "given to " + name, To: screen.OpenList(keymap.InExecutions, "worker:"+quoted)}
		letters.Help, letters.To.Open.Filter = "on their way to "+name, "from:"+quoted
	}
	opens := r.open()
	return r.rule, []screen.Relation{
		{Key: "t", Label: "target", Help: strings.TrimSpace(string(opens.Open.View) + "  " + opens.Open.Filter), To: opens},
		queue, worker, executions, letters,
		{Key: "m", Label: "broker", Help: "queues and wiring, " + monitor.DeadLetterQueue + " among them", To: screen.OpenList(keymap.InBroker, "")},
	}, true
}
