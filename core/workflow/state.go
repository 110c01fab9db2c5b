package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-go/attune/core/attune"
)

// kept is a state as it is written. Most tasks of a long workflow have completed,
// and nothing else is to be said of them: of these only the names are kept, since
// the state is written anew with every decision.
type kept struct {
	Status attune.Status         `json:"status"`
	Paused bool                  `json:"paused,omitempty"`
	Tasks  map[string]*TaskState `json:"tasks"`
	Done   []string              `json:"done,omitempty"`
	Held   []Repeat              `json:"held,omitempty"`
}

// plain is the state of a task that has completed with its one child.
func plain() *TaskState {
	return &TaskState{Status: TaskCompleted, Total: 1, Next: 1, Succeeded: 1}
}

// isPlain reports whether a task is in that state.
func (st *TaskState) isPlain() bool {
	return st.Status == TaskCompleted && st.Total == 1 && st.Next == 1 && st.Succeeded == 1 && st.Open == 0 &&
		st.Items == 0 && st.Failed == 0 && st.TimedOut == 0 && st.Cancelled == 0 &&
		!st.Handled && st.Why == "" && len(st.Arrived) == 0
}

// MarshalState writes a state as it is kept. Its variables are not in it: they have
// a column of their own.
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

// ParseState reads a state as it is kept: what MarshalState gave. Tasks of which the
// same is to be said share what is said.
func ParseState(raw []byte) (*State, error) {
	k := kept{}
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, fmt.Errorf("read the state of a workflow: %w", err)
	}
	s := &State{Status: k.Status, Paused: k.Paused, Held: k.Held,
		Tasks: make(map[string]*TaskState, len(k.Tasks)+len(k.Done))}
	for name, st := range k.Tasks {
		if st != nil {
			s.Tasks[name] = st
		}
	}
	done := plain()
	for _, name := range k.Done {
		s.Tasks[name] = done
	}
	return s, nil
}
