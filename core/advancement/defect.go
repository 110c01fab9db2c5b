package advancement

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/attune-go/attune/core/scheduler"
)

// attempt runs a step. A defect on which it comes is an error like others: it would
// end one replica after the other, each of which finds the same workflow.
func (r *Runner) attempt(ctx context.Context, step *Step) (result scheduler.Result, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			r.logger.ErrorContext(ctx, "A defect was found in leading workflows on", "defect", defect, "stack", string(debug.Stack()))
			err = fmt.Errorf("a defect of the engine: %v", defect)
		}
	}()
	return r.scheduler.Run(ctx, step)
}
