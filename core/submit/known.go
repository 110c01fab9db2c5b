package submit

import (
	"maps"
	"sync"
)

// maxKnown bounds the cached actions.
const maxKnown = 10_000

// known caches actions. The statement that requests executions verifies their version.
type known struct {
	mu      sync.Mutex
	actions map[string]Action
}

func (k *known) add(actions map[string]Action) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.actions) > maxKnown {
		clear(k.actions)
	}
	maps.Copy(k.actions, actions)
}

// of returns the actions of the requests, or false if one of them is not cached, or if they were not read at
// the same version.
func (k *known) of(requests []Request) (map[string]Action, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	actions := make(map[string]Action, 1)
	for _, request := range requests {
		action, ok := k.actions[request.ActionRef]
		if !ok || action.epoch != k.actions[requests[0].ActionRef].epoch {
			return nil, false
		}
		actions[request.ActionRef] = action
	}
	return actions, true
}
