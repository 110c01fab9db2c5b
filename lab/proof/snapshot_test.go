package proof

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/lab/testkit"
)

// slowRun is less than the age at which rows of the outbox violate an invariant.
const slowRun = 20 * time.Second

// check compares the two worlds: every status, every holder, every queue.
func (m *machine) check(*rapid.T) {
	require.Equal(m.t, m.expected(), m.found())
	dispatched, _ := m.sent.take(m.tb)
	for _, id := range dispatched {
		require.False(m.t, m.held[id], "S2: execution %d is dispatched a second time", id)
		m.held[id] = true
	}
	for id, e := range m.model.all {
		require.Equal(m.t, e.admitted == 1, m.held[id], "S1: execution %d is dispatched with its admission", id)
	}
	if len(m.model.notes) == 0 {
		if time.Since(m.begun) > slowRun { // this test publishes no outbox
			testkit.Exec(m.tb, m.store, `UPDATE outbox SET created = now()`)
		}
		testkit.Invariants(m.tb, m.store)
	}
}

// snapshot is a world as text, so that a difference can be read.
type snapshot struct {
	Executions map[int64]string
	Lines      map[place][]int64
	Active     map[place]int
}

func (m *machine) expected() snapshot {
	p := snapshot{Executions: map[int64]string{}, Lines: map[place][]int64{}, Active: map[place]int{}}
	for id, e := range m.model.all {
		p.Executions[id] = e.status
		if e.holds {
			p.Executions[id] += " holds"
		}
	}
	for at, q := range m.model.queues {
		for _, line := range q.lanes {
			for _, e := range line {
				p.Lines[at] = append(p.Lines[at], e.id)
			}
		}
		if n := len(q.holders); n > 0 {
			p.Active[at] = n
		}
	}
	return p
}

func (m *machine) found() snapshot {
	p := snapshot{Executions: map[int64]string{}, Lines: map[place][]int64{}, Active: map[place]int{}}
	var raw []byte
	require.NoError(m.t, m.store.Pool().QueryRow(testkit.Context(m.tb.TB), `SELECT jsonb_build_object(
		'executions', (SELECT jsonb_object_agg(id, status::text || CASE WHEN EXISTS (SELECT FROM execution_holder h WHERE h.execution = execution.id) THEN ' holds' ELSE '' END) FROM execution),
		'queues', (SELECT jsonb_agg(jsonb_build_object('action', a.ref, 'group', coalesce(s.group_key, ''), 'active', s.active_count,
			'line', (SELECT jsonb_agg(q.execution_id ORDER BY q.lane DESC, q.queue_order) FROM execution_admission_entry q WHERE q.state_id = s.id)))
			FROM execution_admission_state s JOIN action a ON a.id = s.action_id))`).Scan(&raw))
	var all struct {
		Executions map[int64]string `json:"executions"`
		Queues     []struct {
			Action string  `json:"action"`
			Group  string  `json:"group"`
			Active int     `json:"active"`
			Line   []int64 `json:"line"`
		} `json:"queues"`
	}
	require.NoError(m.t, json.Unmarshal(raw, &all))
	maps.Copy(p.Executions, all.Executions)
	for _, q := range all.Queues {
		at := place{q.Action, q.Group}
		if len(q.Line) > 0 {
			p.Lines[at] = q.Line
		}
		if q.Active > 0 {
			p.Active[at] = q.Active
		}
	}
	return p
}
