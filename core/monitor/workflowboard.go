package monitor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/store"
)

// WorkflowBoard is what a dashboard lists: the workflows that have not ended, the
// newest first, and below them those that have.
type WorkflowBoard struct {
	Reading
	Filter WorkflowFilter `json:"filter"`
	// List holds at most as many of each kind as the filter's limit says; the first
	// Open of it have not ended.
	List []Workflow `json:"list"`
	Open int        `json:"open"`
	// MoreOpen and MoreEnded say that further ones match.
	MoreOpen  bool `json:"more_open,omitempty"`
	MoreEnded bool `json:"more_ended,omitempty"`
	// Bounded is true when the search stopped at its bound before it had looked at
	// every row, so that older matches may exist.
	Bounded bool `json:"bounded,omitempty"`
}

// WorkflowTerms lists the words that ParseWorkflowFilter understands, for help texts.
var WorkflowTerms = []string{"status:running,failed", "action:shop.*", "paused", "a bare word matches the action"}

// ParseWorkflowFilter reads the filter that people type, such as "status:failed
// action:shop.*". Terms are joined by "and". A term it does not know is an error that
// quotes it, so that a mistyped filter is never applied as something wider.
func ParseWorkflowFilter(text string) (WorkflowFilter, error) {
	var f WorkflowFilter
	for term := range strings.FieldsSeq(text) {
		name, value, named := strings.Cut(term, ":")
		switch {
		case term == "paused", term == "status:paused":
			f.Paused = true
		case !named && strings.ContainsAny(term, "<>="):
			return WorkflowFilter{}, fmt.Errorf("unknown filter term %q", term)
		case !named:
			f.Action = "*" + term + "*"
		case value == "":
			return WorkflowFilter{}, fmt.Errorf("filter term %q has no value", term)
		case name == "status":
			f.Statuses = append(f.Statuses, strings.Split(value, ",")...)
		case name == "action":
			f.Action = value
		default:
			return WorkflowFilter{}, fmt.Errorf("unknown filter term %q", term)
		}
	}
	return f, f.Check()
}

// WorkflowBoard reads the workflows that match, those that have not ended first. The
// searches look at a bounded number of rows and say when they stopped there.
func (m *Monitor) WorkflowBoard(ctx context.Context, filter WorkflowFilter) (*WorkflowBoard, error) {
	b := &WorkflowBoard{Filter: filter, List: []Workflow{}}
	if err := filter.Check(); err != nil {
		return b, err
	}
	err := m.database(ctx, "workflows", &b.Reading, func(ctx context.Context, tx *store.Tx, s shape) error {
		if err := recordsWorkflows(ctx, tx, s); err != nil {
			return err
		}
		open := &Workflows{Filter: filter}
		if err := open.read(ctx, tx, part{open: true}); err != nil {
			return err
		}
		*b = WorkflowBoard{Reading: b.Reading, Filter: filter, List: open.List, Open: len(open.List), MoreOpen: open.Next != 0}
		if filter.live() {
			b.List = orNoWorkflows(b.List)
			return nil
		}
		ended := &Workflows{Filter: filter}
		if err := ended.read(ctx, tx, part{ended: true, past: cmp.Or(filter.Limit, DefaultPage)}); err != nil {
			return err
		}
		b.List = orNoWorkflows(append(b.List, ended.List...))
		b.MoreEnded, b.Bounded = ended.Next != 0, ended.Bounded
		return nil
	})
	return b, err
}

func orNoWorkflows(list []Workflow) []Workflow {
	if list == nil {
		return []Workflow{}
	}
	return list
}
