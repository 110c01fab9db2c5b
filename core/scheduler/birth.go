package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/bounds"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Birth is an execution that the engine makes itself. It is admitted and handed
// over, or begins to wait, in the transaction that makes it: nobody has to ask for
// it. What is left empty is inherited from its parent, if it has one, or from its
// action. Zero stands for none in ids.
type Birth struct {
	// ID is a number from Plan.NewIDs.
	ID int64 `json:"id"`
	// ActionID is filled in by NeedBirth; an action that does not exist fails the
	// execution.
	ActionID  int64           `json:"action,omitempty"`
	ActionRef string          `json:"action_ref"`
	Config    json.RawMessage `json:"config,omitempty"` // parameters, a JSON object
	Parent    int64           `json:"parent,omitempty"`
	// Enforcement is what it goes back to; a second one for the same enforcement
	// takes the round back.
	Enforcement int64 `json:"enforcement,omitempty"`
	// Executor is the identity on whose behalf it runs.
	Executor int64 `json:"executor,omitempty"`
	// PermissionSets are those of its token; nil takes the action's.
	PermissionSets []string `json:"permission_sets,omitzero"`
	// Selector, Tolerations and Affinity say where it may run, in place of its
	// action; raw JSON.
	Selector    json.RawMessage `json:"selector,omitempty"`
	Tolerations json.RawMessage `json:"tolerations,omitempty"`
	Affinity    json.RawMessage `json:"affinity,omitempty"`
	// WorkflowTask says of which task of which workflow it is; a JSON object.
	WorkflowTask json.RawMessage `json:"workflow_task,omitempty"`
	MaxRetries   *int            `json:"max_retries,omitempty"`
	Priority     int16           `json:"-"` // of its parent: the row inherits it
	// Status is running for what no worker runs: a question to a person. Otherwise
	// it is empty.
	Status attune.Status   `json:"status,omitempty"`
	Result json.RawMessage `json:"result,omitempty"` // of one that is running
	// Refuse says why it cannot run: it is made and ends as failed. Empty if it can.
	Refuse string `json:"-"`

	rule    Rule
	known   bool // its action exists
	planned admission.Key
	row     []byte // what is stored of it
}

// NewIDs are numbers for executions that a round will make.
func (p *Plan) NewIDs(ctx context.Context, n int) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	ids, err := p.scheduler.store.NewExecutionIDs(ctx, int32(n))
	if err != nil {
		return nil, fmt.Errorf("take numbers for %d executions: %w", n, err)
	}
	slices.Sort(ids)
	return ids, nil
}

// NeedBirth asks for what making an execution may take. The rules of its action
// are loaded already.
func (p *Plan) NeedBirth(b *Birth) {
	var id *int64
	if b.ActionID != 0 {
		id = &b.ActionID
	}
	p.births = append(p.births, b)
	if b.rule, b.known = p.Rule(id, b.ActionRef); !b.known {
		b.ActionID = 0
		return
	}
	b.ActionID = b.rule.ActionID
	if b.Status == "" && b.Refuse == "" && !b.rule.Workflow {
		b.planned = p.NeedAdmission(b.rule, b.Config)
	}
}

// encodeBirths prepares the new rows before any lock is taken: parameters may be large.
func (p *Plan) encodeBirths() error {
	for _, b := range p.births {
		if err := b.encode(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Birth) encode() (err error) {
	if b.row, err = json.Marshal(b); err != nil {
		return fmt.Errorf("encode the new execution %d: %w", b.ID, err)
	}
	return nil
}

// Create makes an execution that was planned for. It is stored as it was when all steps
// had planned.
func (r *Round) Create(b *Birth) {
	r.births = append(r.births, b)
	status := cmp.Or(b.Status, attune.StatusRequested)
	r.Ledger.Born(b.ID, status)
	switch {
	case b.Refuse != "":
		r.Fail(b.ID, b.ActionID, b.ActionRef, b.Refuse, b.Refuse)
	case status != attune.StatusRequested:
	case !b.known:
		r.Fail(b.ID, 0, b.ActionRef, "action not found", "the action of the execution does not exist")
	case r.RefuseDeep(b.ID, b.ActionID, b.ActionRef, b.Config):
	case b.rule.Workflow:
		r.StartWorkflow(b.ID)
	default:
		r.Enter(admission.Waiter{
			ExecutionID: b.ID, Status: status, ActionID: b.ActionID, ActionRef: b.ActionRef, Config: b.Config,
			Updated: r.Ledger.Now, Created: r.Ledger.Now, Selector: b.Selector, Tolerations: b.Tolerations, Affinity: b.Affinity,
		}, b.rule, Entry{Key: b.planned, Priority: b.Priority})
	}
}

// writeBirths stores the new rows, before anything refers to them.
func (r *Round) writeBirths(p *store.Pipeline) {
	if len(r.births) == 0 {
		return
	}
	slices.SortFunc(r.births, func(a, b *Birth) int { return cmp.Compare(a.ID, b.ID) })
	for _, rows := range birthParts(r.births) {
		p.Exec(store.InsertBirths, rows)
	}
}

// maxBirthBytes bounds what one statement stores of new rows, unless a single one is
// larger: the database has all of it in memory, several times over, and a value of
// JSON has its limit there.
const maxBirthBytes = 8 << 20

// BirthParts encodes new rows as JSON arrays, each for one statement of InsertBirths.
func BirthParts(births []*Birth) ([][]byte, error) {
	for _, b := range births {
		if err := b.encode(); err != nil {
			return nil, err
		}
	}
	return birthParts(births), nil
}

func birthParts(births []*Birth) [][]byte {
	var parts [][]byte
	var rows []byte
	for _, b := range births {
		if len(rows) > 0 && len(rows)+len(b.row)+len(",]") > maxBirthBytes {
			parts, rows = append(parts, append(rows, ']')), nil
		}
		separator := byte(',')
		if rows == nil {
			separator = '['
		}
		rows = append(append(rows, separator), b.row...)
	}
	return append(parts, append(rows, ']'))
}

// asked is the message with which the start of a workflow is asked for that was
// made by this round. One that was there before has its own.
func (r *Round) asked(b *Birth) message.ExecutionRequested {
	asked := message.ExecutionRequested{ExecutionID: b.ID, ActionID: &b.ActionID, ActionRef: b.ActionRef}
	if b.Parent != 0 {
		asked.ParentID = &b.Parent
	}
	if b.Enforcement != 0 {
		asked.EnforcementID = &b.Enforcement
	}
	asked.Config = bounds.Copy(b.Config, maxConfigInDispatch)
	return asked
}
