package inquiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Begin prepares the questions of existing executions of core.ask: requested on their own, retries, and those of
// another engine. The statements of each Opening also set the execution running, without a worker and a slot. A
// question that cannot be asked becomes a fault. Begin reads without locks; its statements abort the transaction if an
// execution was started meanwhile.
func Begin(ctx context.Context, q *store.Queries, executions []int64) (map[int64]*Opening, error) {
	if len(executions) == 0 {
		return map[int64]*Opening{}, nil
	}
	rows, err := q.ReadBeginningQuestions(ctx, executions, Action)
	if err != nil {
		return nil, fmt.Errorf("read the questions of %d executions: %w", len(executions), err)
	}
	all := make(map[int64]*Opening, len(rows))
	for _, row := range rows {
		config := json.RawMessage(row.Config)
		if row.Task { // its own parameters were checked at its creation
			config = Inherited(config)
		}
		question, err := FromConfig(config, time.Duration(row.TimeoutSeconds*float64(time.Second)))
		question.Execution = row.ID
		if err == nil && row.Over {
			err = errors.New("nothing waits for the answer: its workflow has ended")
		}
		if err != nil {
			all[row.ID] = &Opening{Faults: []Fault{{Execution: row.ID, Reason: err.Error()}}}
			continue
		}
		o, err := Prepare(ctx, q, []Question{question})
		if err != nil {
			return nil, err
		}
		o.begins = true
		all[row.ID] = o
	}
	return all, nil
}
