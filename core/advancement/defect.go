package advancement

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/attune-go/attune/core/scheduler"
)

// attempt runs a step and turns a panic into an error: otherwise the panic would crash one replica
// after the other, because each finds the same workflow.
func (r *Runner) attempt(ctx context.Context, step *Step) (result scheduler.Result, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			r.logger.ErrorContext(ctx, "Workflow batch panicked", "defect", defect, "stack", string(debug.Stack()))
			err = fmt.Errorf("a defect of the engine: %v", defect)
		}
	}()
	return r.scheduler.Run(ctx, step)
}
