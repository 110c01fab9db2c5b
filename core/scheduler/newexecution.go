package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
)

// NewExecution is an execution that the engine creates. The transaction that creates it also admits
// and dispatches it, or queues it: no request message is needed. It inherits empty fields from its
// parent, or else from its action. An id of 0 means none.
type NewExecution struct {
	ID int64 `json:"id"`
	// NeedNewExecution sets ActionID; an action that does not exist fails the execution.
	ActionID  int64           `json:"action,omitempty"`
	ActionRef string          `json:"action_ref"`
	Config    json.RawMessage `json:"config,omitempty"` // parameters, a JSON object
	Parent    int64           `json:"parent,omitempty"`
	// Enforcement is the enforcement that caused it. A second execution for one enforcement fails
	// the batch.
	Enforcement int64 `json:"enforcement,omitempty"`
	// Executor is the identity that it runs as.
	Executor int64 `json:"executor,omitempty"`
	// PermissionSets are those of its token; nil takes the action's.
	PermissionSets []string `json:"permission_sets,omitzero"`
	placement.Own
	// WorkflowTask names its task and workflow; a JSON object.
	WorkflowTask json.RawMessage `json:"workflow_task,omitempty"`
	MaxRetries   *int            `json:"max_retries,omitempty"`
	Priority     int16           `json:"-"` // its parent's: the row inherits it
	// Status is running for an execution that no worker runs (an inquiry). Otherwise it is empty.
	Status lifecycle.Status `json:"status,omitempty"`
	Result json.RawMessage  `json:"result,omitempty"` // of a running one
	// Requested is when the work was requested of which it is a part; zero means now.
	Requested time.Time `json:"-"`
	// Refuse is why it cannot run: it is created and ends as failed. Empty if it can run.
	Refuse string `json:"-"`

	rule    Rule
	known   bool // its action exists
	planned admission.Key
	row     []byte // the encoded row
}

// NewIDs reserves ids for executions that the batch creates.
func (p *Plan) NewIDs(ctx context.Context, n int) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	ids, err := p.scheduler.store.NewIDs(ctx, "execution", int32(n))
	if err != nil {
		return nil, fmt.Errorf("reserve ids for %d executions: %w", n, err)
	}
	slices.Sort(ids)
	return ids, nil
}

// NeedNewExecution plans the creation of an execution. The rules of its action must be loaded.
func (p *Plan) NeedNewExecution(e *NewExecution) {
	var id *int64
	if e.ActionID != 0 {
		id = &e.ActionID
	}
	p.newExecutions = append(p.newExecutions, e)
	if e.rule, e.known = p.Rule(id, e.ActionRef); !e.known {
		e.ActionID = 0
		return
	}
	e.ActionID = e.rule.ActionID
	if e.Status == "" && e.Refuse == "" && !e.rule.Workflow {
		e.planned = p.NeedAdmission(e.rule, e.Config)
	}
}

// encodeNewExecutions encodes the new rows before the batch locks anything: parameters may be
// large.
func (p *Plan) encodeNewExecutions() error {
	for _, e := range p.newExecutions {
		if err := e.encode(); err != nil {
			return err
		}
	}
	return nil
}

func (e *NewExecution) encode() (err error) {
	if e.row, err = json.Marshal(e); err != nil {
		return fmt.Errorf("encode the new execution %d: %w", e.ID, err)
	}
	return nil
}

// Create creates a planned execution. The stored row has the state from the end of planning. Waiting
// executions are promoted before: also those of other queues go first to shared limits and workers.
func (b *Batch) Create(e *NewExecution) {
	if !b.Ledger.Promoted() {
		b.Promote()
	}
	b.newExecutions = append(b.newExecutions, e)
	status := cmp.Or(e.Status, lifecycle.StatusRequested)
	b.Ledger.Create(e.ID, status)
	switch {
	case e.Refuse != "":
		b.Fail(e.ID, e.ActionID, e.ActionRef, e.Refuse, e.Refuse)
	case status != lifecycle.StatusRequested:
	case !e.known:
		b.Fail(e.ID, 0, e.ActionRef, "action not found", "the action of the execution does not exist")
	case b.RefuseDeep(e.ID, e.ActionID, e.ActionRef, e.Config):
	case e.rule.Workflow:
		b.StartWorkflow(e.ID)
	default:
		requested := e.Requested
		if requested.IsZero() {
			requested = b.Ledger.Now
		}
		b.Enter(admission.Candidate{
			ExecutionID: e.ID, Status: status, ActionID: e.ActionID, ActionRef: e.ActionRef, Config: e.Config,
			Updated: b.Ledger.Now, Created: b.Ledger.Now, Requested: requested,
			Placement: e.Own,
		}, e.rule, Entry{Key: e.planned, Priority: e.Priority})
	}
}

// writeNewExecutions stores the new rows before any other row refers to them.
func (b *Batch) writeNewExecutions(p *store.Pipeline) {
	if len(b.newExecutions) == 0 {
		return
	}
	slices.SortFunc(b.newExecutions, func(x, y *NewExecution) int { return cmp.Compare(x.ID, y.ID) })
	for _, rows := range newExecutionParts(b.newExecutions) {
		p.Exec(store.InsertNewExecutions, rows)
	}
}

// maxNewExecutionBytes bounds the new rows of one statement, unless a single row is larger. The
// database holds several copies in memory, and its JSON values have a size limit.
const maxNewExecutionBytes = 8 << 20

// NewExecutionParts encodes new rows as JSON arrays, one for each statement of InsertNewExecutions.
func NewExecutionParts(newExecutions []*NewExecution) ([][]byte, error) {
	for _, e := range newExecutions {
		if err := e.encode(); err != nil {
			return nil, err
		}
	}
	return newExecutionParts(newExecutions), nil
}

func newExecutionParts(newExecutions []*NewExecution) [][]byte {
	var parts [][]byte
	var rows []byte
	for _, e := range newExecutions {
		if len(rows) > 0 && len(rows)+len(e.row)+len(",]") > maxNewExecutionBytes {
			parts, rows = append(parts, append(rows, ']')), nil
		}
		separator := byte(',')
		if rows == nil {
			separator = '['
		}
		rows = append(append(rows, separator), e.row...)
	}
	return append(parts, append(rows, ']'))
}

// request is the message that requests the start of a workflow that this batch created. An existing
// workflow has its own.
func (e *NewExecution) request() message.ExecutionRequested {
	request := message.ExecutionRequested{
		ExecutionID: e.ID, ActionID: &e.ActionID, ActionRef: e.ActionRef,
		Config: jsonvalue.Copy(e.Config, maxConfigInDispatch),
	}
	if e.Parent != 0 {
		request.ParentID = &e.Parent
	}
	if e.Enforcement != 0 {
		request.EnforcementID = &e.Enforcement
	}
	return request
}
