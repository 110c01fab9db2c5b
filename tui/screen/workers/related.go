package workers

import (
	"strconv"

	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Relations is what the worker under the cursor has to do with.
func (v *Workers) Relations() (title string, list []screen.Relation, ok bool) {
	at := v.table.Cursor()
	if at < 0 {
		return "", nil, false
	}
	worker := "worker:" + strconv.FormatInt(v.rows[at].ID, 10)
	to := func(filter string) screen.Effect {
		return screen.Effect{Handled: true, Open: keymap.InExecutions, Filter: filter}
	}
	return "worker " + v.rows[at].Name, []screen.Relation{
		{Key: "x", Label: "executions", Help: "all of it", To: to(worker)},
		{Key: "n", Label: "unfinished", Help: "what it has now", To: to(worker + " status:scheduled,running,canceling")},
		{Key: "f", Label: "failed", Help: "what went wrong on it", To: to(worker + " status:failed,timeout,abandoned")},
		{Key: "d", Label: "dead letters", Help: "the view of dead letters", To: screen.Effect{Handled: true, Open: keymap.InDeadLetters}},
	}, true
}
