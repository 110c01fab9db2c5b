package workers

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the worker under the cursor. A queue that no
// worker owns is nobody's to act on.
func (v *Workers) Acts() (act.Menu, bool) {
	at := v.table.Cursor()
	if at < 0 || v.rows[at].orphan {
		return act.Menu{}, false
	}
	return act.ForWorker(&v.rows[at].Worker, v.env.Now, v.env.Data.StaleAfter()), true
}
