package inquiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Begin prepares the questions of executions that are there already and ask to run:
// those that were asked for by themselves, repetitions, and those that another engine
// has left. An Opening for each of these is returned, whose statements also set
// the execution running, without a worker and without a slot, and which has a fault in
// place of the question if that cannot be asked. It reads without locks: an execution
// that does not ask to run any more takes the transaction back.
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
		if row.Task { // what it was given was looked at when it was made
			config = Inherited(config)
		}
		question, err := FromConfig(config, time.Duration(row.TimeoutSeconds*float64(time.Second)))
		question.Execution = row.ID
		if err == nil && row.Over {
			err = errors.New("nobody waits for the answer: its workflow has ended")
		}
		if err != nil {
			all[row.ID] = &Opening{Faults: []Fault{{row.ID, err.Error()}}}
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

// begin sets the executions of questions running.
func (o *Opening) begin() Statement {
	ids, results := make([]int64, len(o.Questions)), make([]string, len(o.Questions))
	for i, q := range o.Questions {
		ids[i], results[i] = q.Execution, string(q.Waiting())
	}
	return Statement{store.BeginQuestions, []any{ids, results}}
}
