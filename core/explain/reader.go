package explain

import (
	"context"
	"strconv"
	"sync"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
)

// Reader adds reasons and forecasts to a Monitor. It is safe for concurrent use.
type Reader struct {
	*monitor.Monitor

	mu   sync.Mutex
	kept map[int64]kept // forecasts of lists, by queue; guarded by mu
}

// New returns a Reader.
func New(m *monitor.Monitor) *Reader { return &Reader{Monitor: m} }

// Execution reads everything about one execution, and why it waits. Documents are cut for a screen. A missing one is
// ErrNotFound.
func (m *Reader) Execution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error) {
	return m.execution(ctx, id, monitor.MaxDocument)
}

// WholeExecution is Execution with whole documents.
func (m *Reader) WholeExecution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error) {
	return m.execution(ctx, id, monitor.WholeDocument)
}

func (m *Reader) execution(ctx context.Context, id int64, most int32) (*monitor.ExecutionDetail, error) {
	d := &monitor.ExecutionDetail{}
	err := m.Read(ctx, "execution "+strconv.FormatInt(id, 10), &d.Reading,
		func(ctx context.Context, tx *store.Tx, s monitor.Shape) error {
			if err := monitor.ReadExecution(ctx, tx, s, id, most, d); err != nil {
				return err
			}
			return m.waiting(ctx, tx, s, d)
		})
	return d, err
}

// waiting reads the place in the queue, the expected start and the lines of Why.
func (m *Reader) waiting(ctx context.Context, tx *store.Tx, s monitor.Shape, d *monitor.ExecutionDetail) error {
	if !s.Ours || lifecycle.Status(d.Status).Terminal() {
		return nil
	}
	w := &Why{Reading: monitor.Reading{At: d.At}}
	if err := m.why(ctx, tx, s, d.ID, w); err != nil {
		return err
	}
	d.Waiting, d.Expected, d.Why = w.Waiting, w.Expected, w.Lines
	return nil
}

// WorkflowTree reads what Workflow does, of one task more children if requested, and what the
// workflow waits for.
func (m *Reader) WorkflowTree(ctx context.Context, ask monitor.WorkflowAsk) (*monitor.WorkflowDetail, error) {
	return m.ReadWorkflow(ctx, ask, m.whyWorkflow)
}
