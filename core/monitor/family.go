package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/store"
)

// The bounds of a family.
const (
	maxAncestors = 16
	// maxBrood bounds the children of one execution, maxFamily the whole tree.
	maxBrood  = 50
	maxFamily = 200
	// maxActs bounds the audit entries.
	maxActs = 20
	// maxAsked bounds the executions whose children are read.
	maxAsked = 40
)

// Relative is an execution in the tree of another one.
type Relative struct {
	Execution

	// Depth counts its ancestors.
	Depth int `json:"depth"`
	// More is true when it has more children than are listed.
	More bool `json:"more,omitempty"`
	// Task is the workflow task that it runs, Item its index of a task over a list, from 0.
	Task string `json:"task,omitempty"`
	Item *int64 `json:"item,omitempty"`
}

// TaskName is the task with the index of its item.
func (r *Relative) TaskName() string {
	if r.Task == "" || r.Item == nil {
		return r.Task
	}
	return r.Task + "[" + strconv.FormatInt(*r.Item, 10) + "]"
}

// Family is everything related to an execution.
type Family struct {
	Reading

	ID int64 `json:"id"`
	// Tree lists the topmost ancestor first and the children below each, the oldest first. More says
	// that it was cut.
	Tree []Relative `json:"tree"`
	More bool       `json:"more,omitempty"`
	// Attempts are its chain of retries, the first one first.
	Attempts []Attempt `json:"attempts"`
	// DeadLetters are its dead letters, the newest first; nil without a ledger.
	DeadLetters []LedgerEntry `json:"letters"`
	// Enforcement is the enforcement that requested it, if any.
	Enforcement *Enforcement `json:"enforcement"`
	// Inquiries are those of the execution or its tasks.
	Inquiries []int64 `json:"inquiries"`
	// Acts are the latest operator actions on it, its attempts and their dead letters; nil where
	// they are not recorded.
	Acts []AuditEntry `json:"acts"`
}

// Family reads everything related to an execution. A missing one is ErrNotFound. Parts that the
// schema does not record are empty.
func (m *Monitor) Family(ctx context.Context, id int64) (*Family, error) {
	f := &Family{ID: id}
	err := m.Read(ctx, "family of execution "+strconv.FormatInt(id, 10), &f.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			top, err := ancestor(ctx, tx, s, id)
			if err != nil {
				return err
			}
			if err := f.grow(ctx, tx, s, top); err != nil {
				return err
			}
			if f.Attempts, err = readAttempts(ctx, tx, s, id); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if err := f.name(ctx, tx); err != nil {
				return err
			}
			if err := f.rest(ctx, tx, s); err != nil {
				return err
			}
			return f.acts(ctx, tx, s)
		})
	return f, err
}

// name finds the workflow tasks of the tree.
func (f *Family) name(ctx context.Context, tx *store.Tx) error {
	ids := make([]int64, len(f.Tree))
	at := make(map[int64]int, len(f.Tree))
	for i := range f.Tree {
		ids[i], at[f.Tree[i].ID] = f.Tree[i].ID, i
	}
	rows, err := tx.MonitorTaskNames(ctx, ids)
	if err != nil {
		return fmt.Errorf("read the tasks of %d executions: %w", len(ids), err)
	}
	for _, row := range rows {
		r := &f.Tree[at[row.ID]]
		r.Task = row.Task
		if item, err := strconv.ParseInt(row.Item, 10, 64); err == nil {
			r.Item = &item
		}
	}
	return nil
}

// acts reads the operator actions on the execution and its relatives.
func (f *Family) acts(ctx context.Context, tx *store.Tx, s Shape) (err error) {
	if !s.Ours {
		return nil
	}
	executions, deadLetters := []int64{f.ID}, []int64{}
	for _, one := range f.Attempts {
		if one.ID != f.ID {
			executions = append(executions, one.ID)
		}
	}
	for i := range f.DeadLetters {
		deadLetters = append(deadLetters, f.DeadLetters[i].ID)
	}
	f.Acts, err = store.Rows[AuditEntry](ctx, tx, store.AuditAbout, executions, deadLetters, maxActs)
	if err != nil {
		return fmt.Errorf("read what was done with execution %d: %w", f.ID, err)
	}
	return nil
}

// Of finds an execution in the tree; nil if it is not there.
func (f *Family) Of(id int64) *Relative {
	for i := range f.Tree {
		if f.Tree[i].ID == id {
			return &f.Tree[i]
		}
	}
	return nil
}

// ancestor finds the topmost ancestor.
func ancestor(ctx context.Context, tx *store.Tx, s Shape, id int64) (*Execution, error) {
	var top *Execution
	for range maxAncestors {
		rows, err := ReadExecutions(ctx, tx, s, []int64{id})
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 { // retention may have deleted the parent
			break
		}
		top = &rows[0]
		if top.Parent == nil {
			break
		}
		id = *top.Parent
	}
	if top == nil {
		return nil, ErrNotFound
	}
	return top, nil
}

// grow reads the tree level by level, so that the deepest levels are cut.
func (f *Family) grow(ctx context.Context, tx *store.Tx, s Shape, top *Execution) error {
	below := map[int64][]Execution{}
	more := map[int64]bool{}
	level, asked, found := []int64{top.ID}, 0, 1
	for len(level) > 0 {
		var next []int64
		for _, parent := range level {
			if asked == maxAsked || found >= maxFamily {
				f.More = true
				break
			}
			asked++
			ids, err := tx.MonitorChildIDs(ctx,
				store.MonitorChildIDsParams{
					Parent: parent, Before: math.MaxInt64, Statuses: []string{},
					Page: maxBrood + 1,
				})
			if err != nil {
				return fmt.Errorf("read the children of execution %d: %w", parent, err)
			}
			if len(ids) > maxBrood {
				more[parent], ids = true, ids[:maxBrood]
			}
			rows, err := ReadExecutions(ctx, tx, s, ids)
			if err != nil {
				return err
			}
			slices.Reverse(rows)
			below[parent] = rows
			found += len(rows)
			for i := range rows {
				next = append(next, rows[i].ID)
			}
		}
		level = next
	}
	f.list(top, below, more, 0)
	return nil
}

// list writes the tree down, parents before children.
func (f *Family) list(x *Execution, below map[int64][]Execution, more map[int64]bool, depth int) {
	f.Tree = append(f.Tree, Relative{Execution: *x, Depth: depth, More: more[x.ID]})
	for i := range below[x.ID] {
		f.list(&below[x.ID][i], below, more, depth+1)
	}
}

// rest reads everything else.
func (f *Family) rest(ctx context.Context, tx *store.Tx, s Shape) error {
	if !s.Ours {
		return nil
	}
	search, err := newDeadLetterSearch(ctx, tx, DeadLetterFilter{Execution: f.ID, Limit: 20}, 0)
	if err != nil {
		return err
	}
	if f.DeadLetters, _, err = search.read(ctx, tx); err != nil {
		return err
	}
	if err := f.questions(ctx, tx); err != nil {
		return err
	}
	return f.cause(ctx, tx)
}

func (f *Family) questions(ctx context.Context, tx *store.Tx) error {
	for _, open := range []bool{true, false} {
		row, err := tx.ViewInquiryIDs(ctx, store.ViewInquiryIDsParams{
			Open: open, Execution: f.ID, Before: math.MaxInt64, Scan: 100, Page: 20, Statuses: []string{},
		})
		if err != nil {
			return fmt.Errorf("read the inquiries of execution %d: %w", f.ID, err)
		}
		f.Inquiries = append(f.Inquiries, row.Ids...)
	}
	return nil
}

// cause reads the enforcement that requested the execution.
func (f *Family) cause(ctx context.Context, tx *store.Tx) error {
	row, err := tx.MonitorExecutionRest(ctx, 1, f.ID)
	if err != nil {
		return fmt.Errorf("read what execution %d came from: %w", f.ID, err)
	}
	if row.Enforcement == nil {
		return nil
	}
	f.Enforcement, err = readEnforcement(ctx, tx, *row.Enforcement)
	return err
}

// Parent is the parent; nil if there is none, or if it was deleted.
func (f *Family) Parent() *Relative {
	if x := f.Of(f.ID); x != nil && x.Parent != nil {
		return f.Of(*x.Parent)
	}
	return nil
}
