package admission

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/store"
)

// Kinds of errors of an operator's actions, for errors.Is. The first three come as a TargetError.
var (
	// ErrNoAction reports that no action has the reference.
	ErrNoAction = errors.New("there is no such action")
	// ErrNoQueue reports that the target has no queue.
	ErrNoQueue = errors.New("there is no such queue")
	// ErrGroup reports that a text is not the group key of a queue.
	ErrGroup = errors.New("not a group of parameter values")
	// ErrConflict reports that rows changed between planning and locking: a retry finds the new
	// ones.
	ErrConflict = errors.New("rows changed meanwhile")
)

// TargetError says in one sentence why the target does not exist.
type TargetError struct {
	Kind error // ErrNoAction, ErrNoQueue or ErrGroup
	Text string
}

// Error is the sentence.
func (e *TargetError) Error() string { return e.Text }

// Unwrap is the kind.
func (e *TargetError) Unwrap() error { return e.Kind }

func targetErrorf(kind error, format string, args ...any) error {
	return &TargetError{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Target is what an operator changes: all queues of an action, or the queue of one group of
// parameter values.
type Target struct {
	ActionID  int64
	ActionRef string
	Group     string // the group's key; empty: all queues of the action

	unlimited  bool // the action's newest concurrency policy sets none
	threshold  int
	parameters []string // the parameters by which its policies group executions
}

// String names the target for users.
func (t Target) String() string {
	if t.Group == "" {
		return t.ActionRef
	}
	return t.ActionRef + " " + t.Group
}

// FindTarget looks up the action and turns the group, a JSON object of paths and values, into a
// group key.
func FindTarget(ctx context.Context, queries *store.Queries, ref, group string) (Target, error) {
	row, err := queries.ControlAction(ctx, ref)
	if errors.Is(err, sql.ErrNoRows) {
		return Target{}, targetErrorf(ErrNoAction, "there is no action %s", ref)
	}
	if err != nil {
		return Target{}, fmt.Errorf("look up action %s: %w", ref, err)
	}
	if row.Workflow {
		return Target{}, targetErrorf(ErrNoQueue,
			"%s is a workflow, and workflows have no queue: pause one with workflow pause, "+
				"or the queues of the actions of its tasks", ref)
	}
	target := Target{
		ActionID: row.ID, ActionRef: row.Ref,
		unlimited: row.Unlimited, threshold: int(row.Threshold), parameters: row.Parameters,
	}
	if group != "" {
		if target.Group, err = groupKey(group); err != nil {
			return Target{}, err
		}
	}
	return target, nil
}

// groupKey encodes a JSON object of paths and values as policy.GroupKey does: compact, keys sorted
// bytewise, canonical numbers.
func groupKey(text string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var values map[string]any
	err := decoder.Decode(&values)
	if _, end := decoder.Token(); err != nil || values == nil || !errors.Is(end, io.EOF) {
		return "", targetErrorf(ErrGroup, "%s is not a group of parameter values: it is not a JSON object", text)
	}
	parts := make([]string, 0, len(values))
	for _, path := range slices.Sorted(maps.Keys(values)) {
		// One value at a time, under the name v: the object's keys are paths, which GroupKey would
		// follow.
		value, _ := policy.GroupKey([]string{"v"}, map[string]any{"v": values[path]})
		name, _ := policy.GroupKey([]string{"v"}, map[string]any{"v": path})
		parts = append(parts, inner(name)+":"+inner(value))
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

// inner is the value of a group key whose only path is v.
func inner(key string) string {
	return strings.TrimSuffix(strings.TrimPrefix(key, `{"v":`), "}")
}

// Fits reports whether the policy in force could make this group; a *TargetError says why not.
func (t Target) Fits() error {
	var values map[string]any
	if err := json.Unmarshal([]byte(t.Group), &values); err != nil {
		return targetErrorf(ErrGroup, "%s is not a group of parameter values: %v", t.Group, err)
	}
	wanted := slices.Clone(t.parameters)
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	switch {
	case len(wanted) == 0:
		return targetErrorf(ErrNoQueue, "there is no queue %s: no policy groups the executions of %s", t, t.ActionRef)
	case !slices.Equal(wanted, slices.Sorted(maps.Keys(values))):
		return targetErrorf(ErrGroup, "%s is not a group of %s: its policy groups by %s", t.Group, t.ActionRef,
			strings.Join(wanted, ", "))
	}
	return nil
}

// groups is the parameter of reading and locking: NULL for all.
func (t Target) groups() []string {
	if t.Group == "" {
		return nil
	}
	return []string{t.Group}
}

// PolicyLimit is the limit of the action's policy; Unlimited and false if it has none.
func (t Target) PolicyLimit() (limit int, limited bool) {
	if t.unlimited {
		return Unlimited, false
	}
	return t.threshold, true
}
