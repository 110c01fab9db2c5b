package admission_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// node is a node of a plan.
type node struct {
	Type      string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	Condition string `json:"Index Cond"`
	Plans     []node `json:"Plans"`
}

// unkeyed lists the scans below a node that read a table without a key. The
// list of blocked queues is empty or is the work to be done, policies and workers are few,
// and the version of the rules is one row.
func (n node) unkeyed() (out []string) {
	scan := strings.HasSuffix(n.Type, "Scan") && n.Relation != ""
	few := slices.Contains([]string{"admission_blocked", "policy", "worker", "worker_load", "admission_epoch"}, n.Relation)
	if scan && n.Type != "Bitmap Heap Scan" && n.Condition == "" && !few {
		out = append(out, n.Type+" on "+n.Relation)
	}
	for _, child := range n.Plans {
		out = append(out, child.unkeyed()...)
	}
	return out
}

// plan is the generic plan of a statement, which the engine's batches keep.
func plan(t *testing.T, st *store.Store, sql string, args ...any) node {
	t.Helper()
	var plans []struct {
		Plan node `json:"Plan"`
	}
	require.NoError(t, json.Unmarshal(testkit.GenericPlan(t, st, "", sql, args...), &plans))
	return plans[0].Plan
}

// PostgreSQL makes plans once and keeps them, from statistics of empty tables too. No frequent statement and no
// sweep may scan a table of hundreds of thousands of rows for that.
func TestNoStatementScansATableWithoutAKey(t *testing.T) {
	batches := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	sweeps := testkit.OpenStore(t, batches.Pool().Config().ConnString())
	none, noInts, noTexts, noTimes := []int64{}, []int32{}, []string{}, []*time.Time{}
	statements := []struct {
		on   *store.Store
		name string
		sql  string
		args []any
	}{
		{batches, "ReadBatchExecutions", store.ReadBatchExecutions, []any{none}},
		{batches, "FindAdmissionStates", store.FindAdmissionStates, []any{none, noTexts}},
		{batches, "LockAdmissionScopes", store.LockAdmissionScopes, []any{none}},
		{batches, "LockAdmissionStates", store.LockAdmissionStates, []any{none}},
		{batches, "LockFreeAdmissionStates", store.LockFreeAdmissionStates, []any{none, 64, none, none, none, none}},
		{batches, "ReadAdmissionStates", store.ReadAdmissionStates, []any{none, "1s"}},
		{batches, "ReadWorkerStandings", store.ReadWorkerStandings, []any{90.0, none}},
		{batches, "ReadAdmissionHeads", store.ReadAdmissionHeads, []any{none, noInts, 200, 8, 64, none, none, none}},
		{batches, "CountAdmissionEntries", store.CountAdmissionEntries, []any{none}},
		{batches, "LockLostHolders", store.LockLostHolders, []any{none}},
		{batches, "DecideExecutions", store.DecideExecutions, []any{none, noTexts, noTexts}},
		{batches, "ReturnScopeSlots", store.ReturnScopeSlots, []any{0, none}},
		{batches, "GrantSlots", store.GrantSlots, []any{int64(0), none, time.Now(), none, none, noInts, none}},
		{batches, "ReleaseSlots", store.ReleaseSlots, []any{none, none}},
		{batches, "TakeScopeSlots", store.TakeScopeSlots, []any{none, none}},
		{batches, "DeleteAdmissionEntries", store.DeleteAdmissionEntries, []any{none}},
		{batches, "InsertAdmissionEntries", store.InsertAdmissionEntries, []any{none, none, none, []int16{}}},
		{
			batches, "UpdateAdmissionStates", store.UpdateAdmissionStates,
			[]any{none, noInts, noInts, none, none, none, none},
		},
		{
			batches, "UpdateAdmissionLanes", store.UpdateAdmissionLanes,
			[]any{none, noInts, noInts, none, none, none, []int16{}},
		},
		{
			batches, "UpdateAdmissionLimits", store.UpdateAdmissionLimits,
			[]any{none, noInts, []bool{}, noInts, noInts, []float64{}, noTimes},
		},
		{
			batches, "UpdateAdmissionScopes", store.UpdateAdmissionScopes,
			[]any{none, noInts, noInts, noTimes, noTimes, noInts, none, noTexts, noInts, noInts},
		},
		{batches, "ChangeWorkerLoads", store.ChangeWorkerLoads, []any{0, 90.0, none, noInts, []bool{}, noInts}},
		{batches, "BlockQueues", store.BlockQueues, []any{none, none, noTexts, noTexts, none, noTimes, noTimes}},
		{
			batches, "ApplyQueueStats", store.ApplyQueueStats,
			[]any{none, noInts, noInts, noInts, none, none, none, none},
		},
		{
			batches, "UpdateQuietStates", store.UpdateQuietStates,
			[]any{none, noInts, noInts, noInts, none, none, none, none, noInts, none, none, none, none},
		},
		{
			batches, "ChangeOpenStates", store.ChangeOpenStates,
			[]any{none, noInts, none, none, none, noInts, noInts, none, none},
		},
		{batches, "FindAdmissionScopes", store.FindAdmissionScopes, []any{noTexts, noTexts}},
		{batches, "RepeatExecutions", store.RepeatExecutions, []any{none, noTexts, []float64{}, nil}},
		{batches, "StartRetries", store.StartRetries, []any{none}},
		{batches, "ReadOutcomes", store.ReadOutcomes, []any{none}},
		{batches, "RecordContradictions", store.RecordContradictions, []any{"", none, noTexts}},
		{batches, "MoveExecutions", store.MoveExecutions, []any{none, none, none, noInts}},
		{batches, "EndScheduled", store.EndScheduled, []any{none, none, noInts, noTexts}},
		{batches, "DeleteUndelivered", store.DeleteUndelivered, []any{none}},
		{
			batches, "RecordLostWork", store.RecordLostWork,
			[]any{noTexts, noTexts, none, noInts, noTexts, none, noTimes},
		},
		{sweeps, "FindLostRequests", store.FindLostRequests, []any{30.0, 30.0, false, 0, 20_000}},
		{sweeps, "FindEndedQueued", store.FindEndedQueued, []any{0, 20_000}},
		{sweeps, "FindEndedHolders", store.FindEndedHolders, []any{5.0, 0, 20_000}},
		{sweeps, "SettleOrphans", store.SettleOrphans, []any{"{}", 1, nil, nil, uuid.NewString()}},
		{sweeps, "ViewQueueHolders", store.ViewQueueHolders, []any{1, 1000}},
		{sweeps, "FindUnfilledQueues", store.FindUnfilledQueues, []any{false, 0, 20_000}},
		{sweeps, "FindExpiredExecutions", store.FindExpiredExecutions, []any{200, 1e9, 3600, 0, 20_000}},
		{sweeps, "FindMisplacedExecutions", store.FindMisplacedExecutions, []any{200, 0, 20_000}},
	}
	const empty = "tables analysed while empty"
	check := func(state string) {
		for _, s := range statements {
			if s.on == sweeps && state == empty {
				continue // sweeps have their plans made anew every time
			}
			require.Empty(t, plan(t, s.on, s.sql, s.args...).unkeyed(), "%s, %s", s.name, state)
		}
	}

	testkit.Exec(t, batches, `ANALYZE`)
	check(empty)
	grow(t, batches)
	check("a long line that the statistics do not know")
	testkit.Exec(t, batches, `ANALYZE`)
	check("a long line that the statistics know")
}

// grow makes two hundred thousand executions wait in the first of some thousand
// queues of an action.
func grow(t *testing.T, st *store.Store) {
	t.Helper()
	action := testkit.Action(t, st, "pk.long")
	testkit.Worker(t, st, "w1")
	for _, table := range []string{"execution", "execution_admission_entry", "execution_retry", "workflow_execution"} {
		// history and keys would take longer than the test
		testkit.Exec(t, st, `ALTER TABLE `+table+` DISABLE TRIGGER ALL`)
	}
	testkit.Exec(t, st, `
		INSERT INTO execution_admission_state (action_id, group_key, max_concurrent, active_count, queued_count, next_queue_order)
		SELECT $1, 'g' || n, 5, 5, CASE n WHEN 1 THEN 200000 ELSE 0 END, 200001 FROM generate_series(1, 5000) n`, action.ID)
	testkit.Exec(t, st, `INSERT INTO execution (action, action_ref) SELECT $1, $2 FROM generate_series(1, 200000)`,
		action.ID, action.Ref)
	testkit.Exec(t, st, `INSERT INTO execution_retry (failed, execution, reason, due, waiting) SELECT id, id + 200000, 'x', now(), false FROM execution WHERE id % 4 = 0`)
	testkit.Exec(t, st, `INSERT INTO workflow_execution (execution, workflow_def, task_graph) SELECT id, 1, '{}' FROM execution WHERE id % 10 = 0`)
	testkit.Exec(t, st, `
		INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
		SELECT (SELECT min(id) FROM execution_admission_state), id, 'queued', id FROM execution`)
	testkit.Exec(t, st, `INSERT INTO execution_holder (execution, state_id, worker, attempt, granted_at)
		SELECT n, n % 5000, n % 20, 1, now() FROM generate_series(1, 20000) n`)
}
