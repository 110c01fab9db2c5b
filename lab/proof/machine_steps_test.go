package proof

import (
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// request adds newcomers whose messages arrive at once.
func (m *machine) request(*rapid.T) { m.batch(nil, m.again(m.newcomers())) }

// requestLate adds newcomers whose messages arrive later.
func (m *machine) requestLate(*rapid.T) { m.late = append(m.late, m.newcomers()...) }

// deliver delivers late messages, in any order.
func (m *machine) deliver(*rapid.T) {
	m.late = slices.DeleteFunc(m.late, func(e *execution) bool { return m.model.all[e.id] == nil })
	if len(m.late) == 0 {
		m.t.Skip("nothing is on its way")
	}
	list := rapid.Permutation(m.late).Draw(m.t, "arrive")
	n := m.draw(1, len(list), "as many")
	m.late = list[n:]
	m.batch(nil, m.again(list[:n:n]))
}

// end has workers end executions without a report.
func (m *machine) end(list []*execution) {
	for _, e := range list {
		e.status = rapid.SampledFrom([]string{"completed", "failed", "timeout", "abandoned", "cancelled"}).Draw(m.t,
			"end")
		require.Equal(m.t, 1, testkit.Exec(m.tb, m.store,
			`UPDATE execution SET status = $1::text::execution_status_enum WHERE id = $2`, e.status, e.id))
	}
}

func running(e *execution) bool { return e.status == "scheduled" }

func (m *machine) finish(*rapid.T) { m.end(m.some("running", running)) }

// finishAndReport is the common case, together with newcomers.
func (m *machine) finishAndReport(*rapid.T) {
	list := m.some("running", running)
	m.end(list)
	m.batch(list, m.newcomers())
}

// rush adds more executions than one lane of a queue accepts and some in the other lanes, and ends most of them.
func (m *machine) rush(*rapid.T) {
	lanes := append([]int{m.draw(1, 2, "lower lane")}, slices.Repeat([]int{m.draw(0, 1, "lane")}, 12)...)
	list := make([]*execution, len(lanes))
	for i, lane := range lanes {
		list[i] = m.newcomer("alpha.plain", "a", lane, false)
	}
	m.batch(nil, list)
	for range m.draw(4, 12, "ends") {
		var running []*execution
		for _, id := range slices.Sorted(maps.Keys(m.model.all)) {
			if e := m.model.all[id]; e.status == "scheduled" && e.at.action == "alpha.plain" {
				running = append(running, e)
			}
		}
		if len(running) == 0 {
			return
		}
		m.end(running[:1])
		m.batch(running[:1], nil)
	}
}

// report reports ends: known ones, ones reported before, and ones that did not happen.
func (m *machine) report(*rapid.T) {
	list := m.again(m.some("reported", func(e *execution) bool { return e.ended() && (e.holds || e.waits) }))
	m.batch(append(list, list[0]), nil)
}

// cancel is an UPDATE by another service. It leaves a hole in the queue.
func (m *machine) cancel(*rapid.T) {
	list := m.some("cancelled", func(e *execution) bool { return !e.ended() })
	var queues []int64
	for _, e := range list {
		e.status = "cancelled"
		testkit.Exec(m.tb, m.store, `UPDATE execution SET status = 'cancelled' WHERE id = $1`, e.id)
		if e.waits {
			queues = append(queues, m.waitsIn(e))
		}
	}
	if rapid.Bool().Draw(m.t, "and said") {
		m.batch(list, nil)
		return
	}
	m.run(scheduler.FillStep{Queues: queues})
	m.model.promote()
}

func (m *machine) waitsIn(e *execution) int64 {
	return int64(testkit.Count(m.tb, m.store, `SELECT state_id FROM execution_admission_entry WHERE execution_id = $1`,
		e.id))
}

// erase is a DELETE by another service, of executions that wait or hold slots.
func (m *machine) erase(*rapid.T) {
	for _, e := range m.some("deleted", func(e *execution) bool { return e.holds || e.waits && !e.ended() }) {
		require.Equal(m.t, 1, testkit.Exec(m.tb, m.store, `DELETE FROM execution WHERE id = $1`, e.id))
		m.model.erase(e)
	}
	if m.immediate {
		m.giveBack(m.t)
	}
}

// giveBack does what the sweep does with the notes of deleted executions; every replica may have read the same
// notes.
func (m *machine) giveBack(*rapid.T) {
	if len(m.model.notes) == 0 {
		m.t.Skip("nothing was deleted")
	}
	rows, err := m.store.FindLostHolders(testkit.Context(m.tb.TB), 100)
	require.NoError(m.t, err)
	lost := make([]scheduler.LostHolder, len(rows))
	for i, row := range rows {
		lost[i] = scheduler.LostHolder{
			Note: row.ID, Queue: row.StateID, WaitedIn: row.WaitedIn, Worker: row.Worker,
			Scopes: row.Scopes,
		}
	}
	require.Len(m.t, lost, len(m.model.notes))
	for range 2 {
		m.run(scheduler.NewReturnStep(lost), scheduler.FillStep{})
	}
	for _, e := range m.model.notes {
		m.model.restore(e)
	}
	m.model.promote()
}

// expire lets the timeout of some pass, and asks about them and others.
func (m *machine) expire(*rapid.T) {
	list := m.some("impatient", func(e *execution) bool { return e.waits })
	for _, e := range list {
		e.aged = true
	}
	testkit.Exec(m.tb, m.store,
		`UPDATE execution_admission_entry SET enqueued_at = now() - interval '2 minutes' WHERE execution_id = ANY ($1)`, idsOf(list))
	list = m.again(list)
	m.run(scheduler.NewExpireStep(idsOf(list), timeout*1e9), scheduler.FillStep{})
	for _, e := range list {
		m.model.expire(e)
	}
	m.model.promote()
}

// override applies an override to the queues of an action.
func (m *machine) override(*rapid.T) {
	ref := rapid.SampledFrom(slices.Sorted(maps.Keys(m.model.actions))).Draw(m.t, "action")
	order := triage.Override{Target: triage.Target{Action: ref}}
	order.Act = rapid.SampledFrom([]triage.Act{
		triage.Pause, triage.Resume, triage.Resume, triage.Limit,
		triage.Reset,
	}).Draw(m.t, "act")
	if order.Act == triage.Limit {
		order.Limit = m.draw(1, 4, "limit")
	}
	known := m.model.queues[place{action: ref}] != nil
	if !known && order.Act != triage.Pause && order.Act != triage.Limit {
		m.t.Skip("there is no queue yet")
	}
	_, err := m.operator.Override(testkit.Context(m.tb.TB), order)
	require.NoError(m.t, err)
	for _, q := range m.model.ofAction(ref) {
		switch order.Act {
		case triage.Pause:
			q.paused = true
		case triage.Resume:
			q.resumed = q.resumed || q.paused
			q.paused = false
		case triage.Limit:
			q.override = order.Limit
		case triage.Reset:
			q.override = 0
		}
	}
	_, nudged := m.nudges.take(m.tb)
	m.run(scheduler.FillStep{}, scheduler.NewRequestStep(nudged))
	m.model.promote()
}

// rule changes, deletes or restores a policy, and nudges its queues as the operator's command does.
func (m *machine) rule(*rapid.T) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.policies))).Draw(m.t, "policy")
	limit := m.draw(1, 4, "limit")
	gone := m.draw(0, 2, "taken away") == 0 && name != "alpha.grouped" // its queues would have other keys
	switch {
	case m.policies[name] == 0:
		m.policies[name] = m.makes[name](limit)
	case gone:
		require.Equal(m.t, 1, testkit.Exec(m.tb, m.store, `DELETE FROM policy WHERE id = $1`, m.policies[name]))
		m.policies[name], limit = 0, 0
	default:
		require.Equal(m.t, 1,
			testkit.Exec(m.tb, m.store, `UPDATE policy SET threshold = $1 WHERE id = $2`, limit, m.policies[name]))
	}
	if strings.HasPrefix(name, ":") {
		m.model.force(m.counter(name), limit)
	} else {
		m.model.actions[name].threshold = limit
	}
	m.nudge(name)
}

// nudge requests the head of every queue of a policy again.
func (m *machine) nudge(name string) {
	pack, wide := strings.CutPrefix(name, ":")
	var heads []int64
	rows, err := m.store.Pool().Query(testkit.Context(m.tb.TB), `
		SELECT DISTINCT ON (q.state_id) q.execution_id
		FROM execution_admission_entry q
		JOIN execution_admission_state s ON s.id = q.state_id
		JOIN action a ON a.id = s.action_id
		WHERE CASE WHEN $2 THEN $1 IN (a.pack_ref, '') ELSE a.ref = $1 END
		ORDER BY q.state_id, q.lane DESC, q.queue_order`, pack, wide)
	require.NoError(m.t, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		require.NoError(m.t, rows.Scan(&id))
		heads = append(heads, id)
	}
	require.NoError(m.t, rows.Err())
	var asked []*execution
	for _, id := range heads {
		asked = append(asked, m.model.all[id])
	}
	// The first batch that reads a limit applies it.
	for _, id := range slices.Sorted(maps.Keys(m.model.all)) {
		if e := m.model.all[id]; wide && strings.HasPrefix(e.at.action, pack) && (e.ended() || e.holds) {
			asked = append(asked, e)
			break
		}
	}
	m.batch(nil, asked)
}
