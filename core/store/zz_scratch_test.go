package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store/internal/db"
	"github.com/attune-go/attune/core/testkit"
)

func TestZZScratch(t *testing.T) {
	st := testkit.Store(t)
	action := testkit.Action(t, st, "demo.sleep")
	worker := testkit.Worker(t, st, "w")
	testkit.Policy(t, st, action, 5)
	state := testkit.State(t, st, action, 5, func(r *testkit.StateRow) { r.Active, r.Queued = 5, 1_000_000 })
	testkit.Exec(t, st, `alter table execution disable trigger user`)
	began := time.Now()
	testkit.Exec(t, st, `insert into execution (action, action_ref, status, created, updated, admitted_at, started_at, finished_at, admission_state_id, worker, config)
		select $1, 'demo.sleep', case when g > 300000 then 'requested'::execution_status_enum when g > 299995 then 'running' else 'completed' end,
			now() - make_interval(secs => (1300000 - g) * 0.01), now(),
			case when g <= 300000 then now() - make_interval(secs => (300000 - g) * 0.5) end,
			case when g <= 300000 then now() - make_interval(secs => (300000 - g) * 0.5) end,
			case when g <= 299995 then now() - make_interval(secs => (300000 - g) * 0.5 - 1) end,
			case when g > 299995 and g <= 300000 then $2::bigint end, case when g <= 300000 then $3::bigint end, '{"tenant":"acme","n":1}'
		from generate_series(1, 1300000) g`, action.ID, state.ID, worker.ID)
	testkit.Exec(t, st, `insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
		select $1, id, 'queued', row_number() over (order by id), created from execution where status = 'requested' and action = $2`, state.ID, action.ID)
	testkit.Exec(t, st, `update execution_admission_state set next_queue_order = 1000001 where id = $1`, state.ID)
	testkit.Exec(t, st, `insert into action (ref, pack, pack_ref, label, entrypoint) select 'demo.a' || g, $1, 'demo', 'x', 'x' from generate_series(1,5000) g`, action.PackID)
	testkit.Exec(t, st, `insert into execution_admission_state (action_id, max_concurrent, queued_count, active_count) select id, 5, 0, id % 3 from action where ref like 'demo.a%'`)
	testkit.Exec(t, st, `analyze execution`)
	t.Logf("generated in %s", time.Since(began))
	var first, last int64
	require.NoError(t, st.Pool().QueryRow(t.Context(), `select min(execution_id), max(execution_id) from execution_admission_entry where state_id = $1`, state.ID).Scan(&first, &last))
	explain := func(name, sql string, args ...any) {
		for round := range 2 {
			rows, err := st.Pool().Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) "+sql, args...)
			require.NoError(t, err, name)
			text := ""
			var line string
			for rows.Next() {
				require.NoError(t, rows.Scan(&line))
				text += line + "\n"
			}
			require.NoError(t, rows.Err(), name)
			if round == 1 {
				fmt.Printf("=== %s\n%s\n", name, text)
			}
		}
	}
	mid := (first + last) / 2
	lanes, places := []int16{}, []int64{}
	for i := range 498 {
		lanes, places = append(lanes, 0), append(places, int64(1+i*2008))
	}
	explain("ViewAdmission", db.ViewAdmission, int32(16384), last)
	explain("ViewQueues", db.ViewQueues, []int64{state.ID})
	explain("ViewHeads", db.ViewHeads, []int64{state.ID})
	explain("ViewAhead last", db.ViewAhead, state.ID, int16(0), int64(1), int64(1000000), int64(10000))
	explain("ViewHoldersBelow head", db.ViewHoldersBelow, action.ID, first, int64(20000), state.ID, int64(1000))
	explain("ViewHoldersBelow end", db.ViewHoldersBelow, action.ID, int64(1<<62), int64(20000), state.ID, int64(1000))
	explain("ViewHoldersAlive", db.ViewHoldersAlive, int64(20000), state.ID, int64(1000))
	explain("ViewSample", db.ViewSample, []int64{first, 1 << 62}, true, int32(16384), action.ID, int64(1000))
	explain("ViewAgeProbes", db.ViewAgeProbes, lanes, places, state.ID)
	explain("ViewAges 5000", db.ViewAges, state.ID, int64(5000))
	explain("ViewPolicies", db.ViewPolicies, action.PackID, action.ID, int32(1000))
	explain("ViewQueueIDs", db.ViewQueueIDs, "", int64(0), false, false, int64(500))
	explain("ViewBusiest", db.ViewBusiest, int32(200))
	_ = mid
}
