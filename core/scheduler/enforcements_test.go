package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func (r *relay) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for _, m := range r.messages {
		keys = append(keys, m.RoutingKey)
	}
	return keys
}

type enforcements struct {
	t         *testing.T
	store     *store.Store
	relay     *relay
	scheduler *scheduler.Scheduler
	action    testkit.ActionRow
	worker    testkit.WorkerRow
	trigger   int64
	rule      int64
}

func setupEnforcements(t *testing.T) *enforcements {
	t.Helper()
	b := &enforcements{t: t, store: testkit.Store(t, func(c *store.Config) { c.HotPath = true }), relay: &relay{}}
	b.scheduler = b.replica()
	b.action = testkit.Action(t, b.store, "demo.act")
	b.worker = testkit.Worker(t, b.store, "w1",
		func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1000) })
	b.trigger = b.id(`insert into trigger (ref, label) values ('demo.door', 'x') returning id`)
	b.rule = b.id(`insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, enabled)
		values ('demo.rule', $1, 'demo', 'x', $2, 'demo.act', $3, 'demo.door', true) returning id`, b.action.PackID, b.action.ID, b.trigger)
	return b
}

func (b *enforcements) replica() *scheduler.Scheduler {
	return scheduler.New(scheduler.Config{},
		scheduler.Deps{Store: b.store, Relay: b.relay, Logger: testkit.Logger(b.t)})
}

func (b *enforcements) id(sql string, args ...any) int64 {
	b.t.Helper()
	return int64(testkit.Count(b.t, b.store, sql, args...))
}

func (b *enforcements) enforcement(event int, config string) int64 {
	b.t.Helper()
	return b.id(`insert into enforcement (rule, rule_ref, trigger_ref, event, payload, config)
		values ($1, 'demo.rule', 'demo.door', $2, '{}', nullif($3, '')::jsonb) returning id`, b.rule, event, config)
}

func (b *enforcements) run(ids ...int64) scheduler.EnforcementOutcome {
	b.t.Helper()
	step := scheduler.NewEnforcementStep(ids)
	_, err := b.scheduler.Run(testkit.Context(b.t), step)
	require.NoError(b.t, err)
	return step.Outcome()
}

func (b *enforcements) status(enforcement int64) (status, reason string) {
	b.t.Helper()
	require.NoError(b.t, b.store.Pool().QueryRow(testkit.Context(b.t),
		`select status::text, coalesce(error, '') from enforcement where id = $1`, enforcement).Scan(&status, &reason))
	return status, reason
}

// An enforcement becomes an execution that is admitted and dispatched where it is
// made, with its parameters, and is processed with it. Again changes nothing (S10).
func TestAnEnforcementBecomesItsExecution(t *testing.T) {
	b := setupEnforcements(t)
	identity := b.id(`insert into identity (login) values ('ann') returning id`)
	testkit.Exec(t, b.store, `update rule set owner_identity = $1, permission_set_refs = '{core.read}'`, identity)
	with, without := b.enforcement(1, `{"a":1}`), b.enforcement(2, `{}`)
	require.Equal(t, scheduler.EnforcementOutcome{Processed: 2}, b.run(without, with, with))

	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from execution
		where status = 'scheduled' and worker = $1 and exists (select from execution_holder h where h.execution = execution.id) and action = $2 and action_ref = 'demo.act'
		and executor = $3 and permission_set_refs = '{core.read}' and parent is null`, b.worker.ID, b.action.ID, identity))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from execution where enforcement = $1 and config = '{"a":1}'`, with))
	require.Equal(t, 1,
		testkit.Count(t, b.store, `select count(*) from execution where enforcement = $1 and config is null`, without))
	require.Equal(t, 2, testkit.Count(t, b.store,
		`select count(*) from enforcement where status = 'processed' and resolved_at is not null and error is null`))
	require.Equal(t, []string{message.DispatchKey(b.worker.ID), message.DispatchKey(b.worker.ID)}, b.relay.keys())

	require.Equal(t, scheduler.EnforcementOutcome{}, b.run(with, without))
	require.Equal(t, 2, testkit.Count(t, b.store, `select count(*) from execution`))
	testkit.Invariants(t, b.store)
}

// The identity and the parameters of a rule that names none.
func TestWithoutAnOwnerTheSystemActs(t *testing.T) {
	b := setupEnforcements(t)
	testkit.Exec(t, b.store, `update action set default_execution_permission_set_refs = '{core.default}'`)
	testkit.Exec(t, b.store, `delete from identity where id = 1`)
	none := b.enforcement(1, ``)
	b.run(none)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution
		where enforcement = $1 and executor is null and permission_set_refs = '{core.default}'`, none))

	testkit.Exec(t, b.store, `insert into identity (id, login) values (1, 'system-1')`)
	testkit.Exec(t, b.store, `update rule set permission_set_refs = '{}'`)
	system := b.enforcement(2, ``)
	b.run(system)
	require.Equal(t, 1,
		testkit.Count(t, b.store,
			`select count(*) from execution where enforcement = $1 and executor = 1 and permission_set_refs = '{}'`,
			system))
}

// Upstream 59: a rule that lost its action disables the enforcement, with the reason. It is no error, and the rest
// of the batch continues.
func TestAnEnforcementWhoseRuleCannotActIsDisabled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, reason string }{
		"rule deleted": {`delete from rule`, "rule demo.rule does not exist any more"},
		"rule disabled": {
			`update rule set enabled = false`,
			"rule demo.rule was disabled before its execution was made",
		},
		"action deleted": {
			`delete from action where ref = 'demo.act'`,
			"action demo.act of rule demo.rule does not exist any more: apply the pack of the rule again",
		},
		"trigger deleted": {
			`delete from trigger where ref = 'demo.door'`,
			"trigger demo.door of rule demo.rule does not exist any more: apply the pack of the rule again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupEnforcements(t)
			other := testkit.Action(t, b.store, "other.act")
			elsewhere := b.id(`insert into trigger (ref, label) values ('other.door', 'x') returning id`)
			bad := b.enforcement(1, `{}`)
			testkit.Exec(t, b.store, c.change)
			healthy := b.id(`insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, enabled)
				values ('other.rule', $1, 'other', 'x', $2, 'other.act', $3, 'other.door', true) returning id`, other.PackID, other.ID, elsewhere)
			good := b.id(`insert into enforcement (rule, rule_ref, trigger_ref, event, payload) values ($1, 'other.rule', 'other.door', 1, '{}') returning id`, healthy)

			outcome := b.run(bad, good, 1<<40)
			require.Equal(t, scheduler.EnforcementOutcome{
				Processed: 1,
				Disabled:  []scheduler.DisabledEnforcement{{ID: bad, RuleRef: "demo.rule", Reason: c.reason}},
				Missing:   []int64{1 << 40},
			}, outcome)
			status, reason := b.status(bad)
			require.Equal(t, "disabled", status)
			require.Equal(t, c.reason, reason)
			status, _ = b.status(good)
			require.Equal(t, "processed", status)
			require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution`))
			require.Equal(t, scheduler.EnforcementOutcome{}, b.run(bad, good))

			registry := prometheus.NewRegistry()
			metrics := scheduler.NewEnforcementMetrics(registry)
			metrics.Observe(outcome)
			n, err := testutil.GatherAndCount(registry, "attune_enforcements_total")
			require.NoError(t, err)
			require.Equal(t, 2, n)
		})
	}
}

// An execution that another service has made already is the one (S10).
func TestAnExecutionThatIsThereIsKept(t *testing.T) {
	b := setupEnforcements(t)
	id := b.enforcement(1, `{}`)
	theirs := testkit.Execution(t, b.store, b.action, func(e *testkit.ExecutionRow) { e.Enforcement = &id })
	require.Equal(t, scheduler.EnforcementOutcome{Processed: 1}, b.run(id))
	require.Equal(t, theirs.ID, b.id(`select id from execution where enforcement = $1`, id))
	require.Equal(t, lifecycle.StatusRequested, testkit.StatusOf(t, b.store, theirs.ID))
	status, _ := b.status(id)
	require.Equal(t, "processed", status)
}

// The secrets of the parameters go with the execution, as they are.
func TestSecretsGoWithTheExecution(t *testing.T) {
	b := setupEnforcements(t)
	id := b.enforcement(1, `{"token":{"$attune_secret":true,"redacted":true}}`)
	testkit.Exec(t, b.store, `insert into execution_secret_value (entity_type, entity_id, json_path, source_kind, encrypted_value)
		values ($1, $2, '/token', 'parameter_schema', '"sealed"')`, secret.OfEnforcement, id)
	b.run(id)
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from execution_secret_value v join execution e on e.id = v.entity_id
		where v.entity_type = 'execution_config' and v.json_path = '/token' and v.encrypted_value = '"sealed"' and e.enforcement = $1`, id))
}

// S10 under contention: replicas with the same enforcements make one execution each,
// within the limit of the action (S3).
func TestReplicasWithTheSameEnforcementsMakeOneExecutionEach(t *testing.T) {
	b := setupEnforcements(t)
	testkit.Policy(t, b.store, b.action, 3)
	const n = 60
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = b.enforcement(i+1, fmt.Sprintf(`{"i":%d}`, i))
	}
	var replicas errgroup.Group
	for r := range 3 {
		replica := b.replica()
		replicas.Go(func() error {
			mine := slices.Clone(ids)
			if r%2 == 1 {
				slices.Reverse(mine)
			}
			for part := range slices.Chunk(append(mine, mine...), 11+r) {
				for {
					_, err := replica.Run(testkit.Context(t), scheduler.NewEnforcementStep(part))
					if err == nil {
						break
					}
					if class := store.ClassOf(err); class != store.ClassRefused && class != store.ClassConflict &&
						class != store.ClassRetryable {
						return err
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, replicas.Wait())
	require.Equal(t, n, testkit.Count(t, b.store, `select count(*) from execution`))
	require.Equal(t, n, testkit.Count(t, b.store, `select count(distinct enforcement) from execution`))
	require.Equal(t, n, testkit.Count(t, b.store, `select count(*) from enforcement where status = 'processed'`))
	require.Equal(t, 3, testkit.Count(t, b.store, `select count(*) from execution where status = 'scheduled'`))
	require.Equal(t, n-3, testkit.Count(t, b.store, `select count(*) from execution_admission_entry`))
	testkit.Invariants(t, b.store)
}

// S4: an execution that an enforcement creates does not overtake executions that wait in other queues
// for the same shared limit or for the same workers.
func TestANewExecutionDoesNotOvertakeWaitingOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, room func(b *enforcements)
		waiting      int
	}{
		"a shared limit is raised": {
			before: func(b *enforcements) { testkit.Policy(b.t, b.store, b.action, 3, testkit.OfPack(b.action)) },
			room:   func(b *enforcements) { testkit.Exec(b.t, b.store, `UPDATE policy SET threshold = 5`) }, waiting: 2,
		},
		"a worker comes": {
			before: func(b *enforcements) {
				testkit.Exec(b.t, b.store,
					`UPDATE worker SET capabilities = capabilities || '{"max_concurrent_executions": 1}'`)
			},
			room: func(b *enforcements) {
				testkit.Worker(b.t, b.store, "w2",
					func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(1) })
			}, waiting: 1 + placement.HeadroomPerWorker,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupEnforcements(t)
			c.before(b)
			other := testkit.Action(t, b.store, "demo.other")
			ids := make([]int64, 3+c.waiting)
			for i := range ids {
				ids[i] = testkit.Execution(t, b.store, other).ID
			}
			_, err := b.scheduler.Run(testkit.Context(t), scheduler.FillStep{}, scheduler.NewRequestStep(ids))
			require.NoError(t, err)
			waiting := `SELECT count(*) FROM execution WHERE action = $1 AND status = 'requested'`
			require.Equal(t, c.waiting, testkit.Count(t, b.store, waiting, other.ID))
			c.room(b)
			b.scheduler = b.replica() // it knows the present workers
			require.Equal(t, scheduler.EnforcementOutcome{Processed: 1}, b.run(b.enforcement(1, `{}`)))
			require.Zero(t, testkit.Count(t, b.store, waiting, other.ID))
			require.Equal(t, 1, testkit.Count(t, b.store, waiting, b.action.ID))
			testkit.Invariants(t, b.store)
		})
	}
}
