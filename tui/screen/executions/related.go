package executions

import (
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// RelatedExecution is the execution under the cursor.
func (x *Executions) RelatedExecution() (*monitor.Execution, bool) {
	at := x.table.Cursor()
	if at < 0 {
		return nil, false
	}
	return &x.rows[at], true
}

// Relations is what the execution under the cursor has to do with, as far as its
// row says.
func (x *Executions) Relations() (title string, list []screen.Relation, ok bool) {
	r, ok := x.RelatedExecution()
	if !ok {
		return "", nil, false
	}
	return "execution " + strconv.FormatInt(r.ID, 10), screen.ExecutionRelations(r, nil), true
}
