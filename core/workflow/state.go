package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
)

// kept is the stored form of a state. It has only the names of plainly completed tasks, which are most tasks of a long
// workflow, since every decision writes the state anew.
type kept struct {
	Status lifecycle.Status      `json:"status"`
	Paused bool                  `json:"paused,omitempty"`
	Tasks  map[string]*TaskState `json:"tasks"`
	Done   []string              `json:"done,omitempty"`
	Held   []Repeat              `json:"held,omitempty"`
}

// isPlain reports whether a task has completed with its only child.
func (st *TaskState) isPlain() bool {
	return st.Status == TaskCompleted && st.Total == 1 && st.Next == 1 && st.Succeeded == 1 && st.Open == 0 &&
		st.Items == 0 && st.Failed == 0 && st.TimedOut == 0 && st.Cancelled == 0 &&
		!st.Handled && st.Why == "" && len(st.Arrived) == 0
}

// MarshalState writes the stored form of a state, without its variables, which have their own column.
func MarshalState(s *State) ([]byte, error) {
	k := kept{Status: s.Status, Paused: s.Paused, Held: s.Held, Tasks: map[string]*TaskState{}}
	for _, name := range slices.Sorted(maps.Keys(s.Tasks)) {
		if st := s.Tasks[name]; st.isPlain() {
			k.Done = append(k.Done, name)
		} else {
			k.Tasks[name] = st
		}
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("write the state of a workflow: %w", err)
	}
	return raw, nil
}

// ParseState reads a state of MarshalState. Plainly completed tasks share one TaskState.
func ParseState(raw []byte) (*State, error) {
	k := kept{}
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, fmt.Errorf("read the state of a workflow: %w", err)
	}
	s := &State{
		Status: k.Status, Paused: k.Paused, Held: k.Held,
		Tasks: make(map[string]*TaskState, len(k.Tasks)+len(k.Done)),
	}
	for name, st := range k.Tasks {
		if st != nil {
			s.Tasks[name] = st
		}
	}
	done := &TaskState{Status: TaskCompleted, Total: 1, Next: 1, Succeeded: 1}
	for _, name := range k.Done {
		s.Tasks[name] = done
	}
	return s, nil
}
