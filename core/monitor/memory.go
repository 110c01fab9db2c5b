package monitor

import (
	"strings"
	"sync"
	"time"
)

// Memory is since when this program has found what nobody writes down the beginning
// of. What is no longer found is forgotten.
type Memory struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Hold remembers what was found at a time, of all whose key begins so, and says since
// when each was.
func (m *Memory) Hold(prefix string, found []string, at time.Time) []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, begun := map[string]time.Time{}, make([]time.Time, len(found))
	for i, key := range found {
		key = prefix + key
		if begun[i] = at; !m.since[key].IsZero() {
			begun[i] = m.since[key]
		}
		kept[key] = begun[i]
	}
	for key, since := range m.since {
		if !strings.HasPrefix(key, prefix) {
			kept[key] = since
		}
	}
	m.since = kept
	return begun
}

// holdChecks says of what is wrong since when this program has seen it.
func (m *Monitor) holdChecks(list []Check, at time.Time) {
	var found []string
	for i := range list {
		if list[i].Status.wrong() {
			found = append(found, list[i].Name)
		}
	}
	begun := m.memory.Hold("check\x1f", found, at)
	for i := range list {
		if list[i].Status.wrong() {
			list[i].Seen, begun = &begun[0], begun[1:]
		}
	}
}

func (s CheckStatus) wrong() bool { return s == CheckProblem || s == CheckWarning }
