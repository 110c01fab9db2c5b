package scheduler

import (
	"context"
	"log/slog"

	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// traces is what a batch knows and writes about the traces of its executions.
type traces struct {
	roots    map[int64]tracing.Context // of the executions that it dispatches, moves or ends
	finished []int64                   // ended executions whose spans are to be sent
}

// Traced reports whether tracing is on.
func (b *Batch) Traced() bool { return b.scheduler.cfg.Traces != nil }

// finish has the spans of an ended execution sent after the commit.
func (b *Batch) finish(id int64) {
	if b.Traced() {
		b.finished = append(b.finished, id)
	}
}

// readTraces finds the traces of the executions that the batch dispatches, moves or ends. One that it
// creates is in the trace of its parent or its enforcement.
func (b *Batch) readTraces(ctx context.Context, tx *store.Tx) error {
	if !b.Traced() {
		return nil
	}
	var executions, enforcements []int64
	for _, g := range b.Ledger.Granted() {
		executions = append(executions, g.ExecutionID)
	}
	for _, m := range b.moves {
		executions = append(executions, m.candidate.ExecutionID)
	}
	for _, s := range b.stops {
		executions = append(executions, s.execution)
	}
	for _, e := range b.endings {
		executions = append(executions, e.execution)
	}
	for _, e := range b.newExecutions {
		if e.Parent != 0 {
			executions = append(executions, e.Parent)
		} else if e.Enforcement != 0 {
			enforcements = append(enforcements, e.Enforcement)
		}
	}
	if len(executions)+len(enforcements) == 0 {
		return nil
	}
	ofExecution, ofEnforcement, err := b.scheduler.cfg.Traces.In(ctx, tx.Queries, executions, enforcements)
	if err != nil {
		return err
	}
	for _, e := range b.newExecutions {
		if e.Parent != 0 {
			ofExecution[e.ID] = ofExecution[e.Parent]
		} else if e.Enforcement != 0 {
			ofExecution[e.ID] = ofEnforcement[e.Enforcement]
		}
	}
	b.roots = ofExecution
	return nil
}

// position is the traceparent of the dispatch of an execution, empty while tracing is off.
func (b *Batch) position(id int64) string {
	if !b.Traced() {
		return ""
	}
	return b.roots[id].At(tracing.Execution, id, tracing.Dispatch).String()
}

// traceHeader is a traceparent as the header of a message.
func traceHeader(position string) string {
	if position == "" {
		return ""
	}
	return outbox.HeaderTrace(tracing.Header, position)
}

// of adds the trace of an execution to its log lines, while tracing is on.
func (t *traces) of(id int64, logger *slog.Logger) *slog.Logger {
	root, ok := t.roots[id]
	if !ok {
		return logger
	}
	return logger.With("trace_id", root.Trace.String())
}
