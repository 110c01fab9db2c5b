package catalog_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// relay records the messages to publish.
type relay struct{ messages []outbox.Message }

func (r *relay) Published(_ int64, messages []outbox.Message) {
	r.messages = append(r.messages, messages...)
}

type bundle struct {
	store   *store.Store
	relay   *relay
	catalog *catalog.Catalog
	rollout testkit.ActionRow
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{store: testkit.Store(t), relay: &relay{}}
	b.catalog = catalog.New(b.store, b.relay)
	b.rollout = testkit.Action(t, b.store, "deploy.rollout", func(row *testkit.ActionRow) {
		row.ParamSchema = map[string]any{"region": map[string]any{"type": "string"}}
	})
	return b
}

// request parses a file.
func request(content string) catalog.Request {
	policies, mistakes := pack.Parse("limits.yaml", []byte(content))
	return catalog.Request{Set: &pack.Set{Policies: policies}, Mistakes: mistakes, Actor: "ada", Source: "test"}
}

// apply applies a file in which nothing is wrong.
func (b *bundle) apply(t *testing.T, content string) catalog.Result {
	t.Helper()
	result, err := b.catalog.Apply(t.Context(), request(content))
	require.NoError(t, err)
	return result
}

// row reads a policy without its times.
func (b *bundle) row(t *testing.T, ref string) map[string]any {
	t.Helper()
	var text string
	err := b.store.Pool().QueryRow(t.Context(),
		"select to_jsonb(p) - 'id' - 'created' - 'updated' from policy p where ref = $1", ref).Scan(&text)
	require.NoError(t, err)
	var row map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &row))
	return row
}

func (b *bundle) policies(t *testing.T) int {
	t.Helper()
	return testkit.Count(t, b.store, "select count(*) from policy")
}

const everyKey = `
ref: deploy.limit
name: Rollouts
description: At most five.
tags: [a, b]
action: deploy.rollout
threshold: 5
method: cancel
parameters: [region]
max_queue_length: 100
queue_timeout: 90
retry_place: front
adaptive: {min: 2, latency: 2s}
`

func TestApplyStoresEveryKey(t *testing.T) {
	b := setup(t)
	result := b.apply(t, everyKey+`---
ref: deploy.pace
kind: rate
pack: deploy
threshold: 10
window: 60s
burst: 3
---
ref: all.quota
kind: quota
threshold: 1000
window: 24h
`)
	require.Equal(t, 3, result.Count(catalog.Added))
	require.Zero(t, result.Nudged)
	require.Equal(t, map[string]any{
		"ref": "deploy.limit", "name": "Rollouts", "description": "At most five.", "tags": []any{"a", "b"},
		"action": float64(b.rollout.ID), "action_ref": "deploy.rollout", "pack": float64(b.rollout.PackID),
		"pack_ref": "deploy",
		"kind":     "concurrency", "threshold": 5.0, "method": "cancel", "parameters": []any{"region"},
		"window_seconds": nil, "burst": nil, "max_queue_length": 100.0, "queue_timeout_seconds": 90.0,
		"retry_place":  "front",
		"adaptive_min": 2.0, "adaptive_latency_ms": 2000.0,
	}, b.row(t, "deploy.limit"))
	require.Equal(t, map[string]any{
		"ref": "deploy.pace", "name": "deploy.pace", "description": nil, "tags": []any{},
		"action": nil, "action_ref": nil, "pack": float64(b.rollout.PackID), "pack_ref": "deploy",
		"kind": "rate", "threshold": 10.0, "method": "enqueue", "parameters": []any{},
		"window_seconds": 60.0, "burst": 3.0, "max_queue_length": nil, "queue_timeout_seconds": nil, "retry_place": nil,
		"adaptive_min": nil, "adaptive_latency_ms": nil,
	}, b.row(t, "deploy.pace"))
	quota := b.row(t, "all.quota")
	require.Nil(t, quota["pack"])
	require.Nil(t, quota["action"])
	require.InDelta(t, 86400, quota["window_seconds"], 0)
}

// A repeated application changes no row, writes no audit row and invalidates no cache of rules.
func TestApplyAgainTouchesNothing(t *testing.T) {
	b := setup(t)
	b.apply(t, everyKey)
	b.apply(t, "ref: core.one\nthreshold: 1\ndescription: ''\n")
	const fingerprint = "select count(*) from policy where updated > created"
	epoch := testkit.Count(t, b.store, "select epoch from admission_epoch")
	audits := testkit.Count(t, b.store, "select count(*) from operator_audit")
	require.Equal(t, 2, audits)

	result := b.apply(t, everyKey+"---\nref: core.one\nthreshold: 1\n")
	require.Equal(t, 2, result.Count(catalog.Unchanged))
	require.Empty(t, result.Changes[0].Fields)
	require.Zero(t, testkit.Count(t, b.store, fingerprint))
	require.Equal(t, epoch, testkit.Count(t, b.store, "select epoch from admission_epoch"))
	require.Equal(t, audits, testkit.Count(t, b.store, "select count(*) from operator_audit"))
}

func TestApplyChanges(t *testing.T) {
	b := setup(t)
	b.apply(t, everyKey)
	const changed = `
ref: deploy.limit
name: Rollouts
kind: rate
threshold: 10
window: 2m
tags: ["a, b"]
`
	want := []catalog.FieldChange{
		{Key: "kind", Old: "concurrency", New: "rate"},
		{Key: "action", Old: "deploy.rollout", New: ""},
		{Key: "pack", Old: "deploy", New: ""},
		{Key: "threshold", Old: "5", New: "10"},
		{Key: "window", Old: "", New: "2m"},
		{Key: "method", Old: "cancel", New: "enqueue"},
		{Key: "parameters", Old: "region", New: ""},
		{Key: "max_queue_length", Old: "100", New: ""},
		{Key: "queue_timeout", Old: "1m30s", New: ""},
		{Key: "retry_place", Old: "front", New: ""},
		{Key: "adaptive.min", Old: "2", New: ""},
		{Key: "adaptive.latency", Old: "2s", New: ""},
		{Key: "description", Old: "At most five.", New: ""},
		{Key: "tags", Old: "a, b", New: `"a, b"`},
	}
	before := b.row(t, "deploy.limit")
	dry := request(changed)
	dry.DryRun = true
	result, err := b.catalog.Apply(t.Context(), dry)
	require.NoError(t, err)
	require.Equal(t, catalog.Changed, result.Changes[0].How)
	require.Equal(t, want, result.Changes[0].Fields)
	require.Equal(t, before, b.row(t, "deploy.limit"), "a dry run writes nothing")
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(*) from operator_audit"))

	require.Equal(t, want, b.apply(t, changed).Changes[0].Fields)
	require.Equal(t, "rate", b.row(t, "deploy.limit")["kind"])
	require.Equal(t, 1, b.policies(t))
	require.Equal(t, 1, testkit.Count(t, b.store, `
		select count(*) from operator_audit a join policy p on p.id = a.target_id
		where a.actor = 'ada' and a.source = 'test' and a.action = 'policy.apply' and a.target_type = 'policy'
			and a.target = 'deploy.limit' and a.outcome = 'done' and a.request->>'change' = 'changed'
			and a.request->>'file' = 'limits.yaml:2:1'
			and a.request->'fields'->0 = '{"key": "kind", "old": "concurrency", "new": "rate"}'`))
}

// All mistakes are reported, of the file and of its references, and nothing is written.
func TestApplyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.apply(t, everyKey)
	for name, tc := range map[string]struct {
		content string
		want    []string
	}{
		"Database": {
			"ref: deploy.good\nthreshold: 1\n---\nref: deploy.bad\nthreshold: 1\naction: deploy.rolout\n",
			[]string{
				"limits.yaml:6:1: there is no action deploy.rolout; the nearest is deploy.rollout",
			},
		},
		"Both": {
			"ref: deploy.good\nthreshold: 0\npack: deplyo\n---\nref: x.y\nthreshold: 1\nparameters: [zone]\n",
			[]string{
				"limits.yaml:2:12: threshold is 0; it must be at least 1",
				"limits.yaml:3:1: there is no pack deplyo; the nearest is deploy",
				"limits.yaml:7:1: the path zone is no parameter of any action",
			},
		},
		"Path": {"ref: x.y\nthreshold: 1\naction: deploy.rollout\nparameters: [regoin]\n", []string{
			"limits.yaml:4:1: the path regoin is no parameter of the action deploy.rollout; the nearest is region",
		}},
		"PathOfPack": {"ref: x.y\nthreshold: 1\npack: core\nparameters: [region]\n", []string{
			"limits.yaml:4:1: the path region is no parameter of any action of the pack core",
		}},
		"OtherPack": {"ref: x.y\nthreshold: 1\npack: core\naction: deploy.rollout\n", []string{
			"limits.yaml:4:1: the action deploy.rollout belongs to the pack deploy, not to core",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, dry := range []bool{false, true} {
				wrong := request(tc.content)
				wrong.DryRun = dry
				_, err := b.catalog.Apply(t.Context(), wrong)
				var mistakes *pack.MistakesError
				require.ErrorAs(t, err, &mistakes)
				got := make([]string, len(mistakes.Mistakes))
				for i, mistake := range mistakes.Mistakes {
					got[i] = mistake.String()
				}
				require.Equal(t, tc.want, got)
				require.Equal(t, 1, b.policies(t))
			}
		})
	}
}

// A late error of the database rolls all changes back.
func TestApplyRollsBack(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, "alter table policy add constraint small check (threshold < 100)")
	_, err := b.catalog.Apply(t.Context(), request("ref: a.one\nthreshold: 1\n---\nref: a.two\nthreshold: 100\n"))
	require.ErrorContains(t, err, "write the policy a.two")
	require.Equal(t, store.ClassRefused, store.ClassOf(err))
	require.Zero(t, b.policies(t))
	require.Zero(t, testkit.Count(t, b.store, "select count(*) from operator_audit"))
	require.Empty(t, b.relay.messages)
}

// Concurrent applications of the same policies run one after the other. Each compares with the result of the one
// before, so that the audit rows form a chain.
func TestConcurrentApplies(t *testing.T) {
	b := setup(t)
	const appliers = 8
	var group sync.WaitGroup
	errs := make([]error, appliers)
	for i := range appliers {
		group.Go(func() {
			first, second := "deploy.a", "deploy.b" // the order of the file must not matter
			if i%2 == 1 {
				first, second = second, first
			}
			content := fmt.Sprintf(
				"ref: %s\nthreshold: %d\naction: deploy.rollout\n---\nref: %s\nthreshold: %d\npack: deploy\n",
				first, i+1, second, i+1)
			_, errs[i] = catalog.New(b.store, nil).Apply(t.Context(), request(content))
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 2, b.policies(t))
	for _, ref := range []string{"deploy.a", "deploy.b"} {
		require.Equal(t, 1, testkit.Count(t, b.store,
			"select count(*) from operator_audit where target = $1 and request->>'change' = 'new'", ref), ref)
		require.Zero(t, testkit.Count(t, b.store, `
			select count(*) from (
				select lag(f->>'new') over (order by a.id) as before, f->>'old' as old
				from operator_audit a, jsonb_array_elements(a.request->'fields') f
				where a.target = $1 and f->>'key' = 'threshold') c
			where before is distinct from old and before is not null`, ref), "each change begins where the one before ended")
	}
	require.Equal(t, 1, testkit.Count(t, b.store, "select count(distinct threshold) from policy"),
		"the last application wins for both")
}

// The second application compares after the first one has committed.
func TestApplyWaitsForAnother(t *testing.T) {
	b := setup(t)
	held := testkit.Begin(t, b.store)
	_, err := held.Exec(t.Context(), store.LockCatalog)
	require.NoError(t, err)
	_, err = held.Exec(t.Context(),
		"insert into policy (ref, name, method, threshold) values ('a.one', 'a.one', 'enqueue', 4)")
	require.NoError(t, err)

	type answer struct {
		result catalog.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := b.catalog.Apply(t.Context(), request("ref: a.one\nthreshold: 5\n"))
		answers <- answer{result, err}
	}()
	b.awaitWaiting(t)
	require.Empty(t, answers)
	require.NoError(t, held.Commit(t.Context()))
	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, []catalog.FieldChange{{Key: "threshold", Old: "4", New: "5"}}, got.result.Changes[0].Fields)
}

// awaitWaiting waits until a session waits for a lock in this test's database.
func (b *bundle) awaitWaiting(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	}, testkit.TestTimeout, "no session waits for a lock")
}

// An application waits for the deletion of its action and then reports it as missing.
func TestApplyWaitsForADeletion(t *testing.T) {
	b := setup(t)
	deletion := testkit.Begin(t, b.store)
	_, err := deletion.Exec(t.Context(), "delete from action where ref = 'deploy.rollout'")
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := b.catalog.Apply(t.Context(), request("ref: a.one\nthreshold: 5\naction: deploy.rollout\n"))
		failed <- err
	}()
	b.awaitWaiting(t)
	require.NoError(t, deletion.Commit(t.Context()))
	var mistakes *pack.MistakesError
	require.ErrorAs(t, <-failed, &mistakes)
	require.Equal(t, "limits.yaml:3:1: there is no action deploy.rollout", mistakes.Mistakes[0].String())
	require.Zero(t, b.policies(t))
}

// queue makes a queue of an action with waiters in the lanes and returns the
// executions in the same order.
func (b *bundle) queue(t *testing.T, action testkit.ActionRow, group string, lanes ...int) []int64 {
	t.Helper()
	state := testkit.State(t, b.store, action, 1, func(row *testkit.StateRow) {
		row.Active, row.Queued = 1, int32(len(lanes))
		if group != "" {
			row.GroupKey = &group
		}
	})
	ids := make([]int64, len(lanes))
	for i, lane := range lanes {
		ids[i] = testkit.Execution(t, b.store, action,
			func(row *testkit.ExecutionRow) { row.Config = map[string]int{"i": i} }).ID
		testkit.Exec(t, b.store, `insert into execution_admission_entry (state_id, execution_id, status, queue_order, lane)
			values ($1, $2, 'queued', $3, $4)`, state.ID, ids[i], i+1, lane)
	}
	return ids
}

// nudged lists the executions whose requests were sent again.
func (b *bundle) nudged(t *testing.T) []int64 {
	t.Helper()
	ids := []int64{}
	for _, m := range b.relay.messages {
		require.Equal(t, message.ExchangeExecutions, m.Exchange)
		require.Equal(t, message.KeyExecutionRequested, m.RoutingKey)
		envelope, err := message.Decode[message.ExecutionRequested](m.Body)
		require.NoError(t, err)
		require.Equal(t, m.ID, envelope.MessageID)
		require.NotEmpty(t, envelope.Payload.ActionRef)
		ids = append(ids, envelope.Payload.ExecutionID)
	}
	require.Equal(t, len(ids),
		testkit.Count(t, b.store, "select coalesce(sum(cardinality(message_ids)), 0) from outbox"))
	b.relay.messages = nil
	testkit.Exec(t, b.store, "delete from outbox")
	return ids
}

// The queues of a changed policy, before and after the change, are requested again.
func TestApplyNudgesWaitingExecutions(t *testing.T) {
	b := setup(t)
	scale := testkit.Action(t, b.store, "deploy.scale")
	other := testkit.Action(t, b.store, "other.work")
	rollout := b.queue(t, b.rollout, "", -1, 0, 1, 1)
	grouped := b.queue(t, b.rollout, `{"region":"eu"}`, 0, 0)
	scaled := b.queue(t, scale, "", 0)
	worked := b.queue(t, other, "", -1)
	b.queue(t, other, `{"x":1}`) // nothing waits in it
	paused := b.queue(t, other, `{"x":2}`, 0)
	testkit.Exec(t, b.store, "update execution_admission_state set paused = true where group_key = $1", `{"x":2}`)

	result := b.apply(t, "ref: p.one\nthreshold: 2\naction: deploy.rollout\n")
	require.Equal(t, 2, result.Nudged)
	require.Equal(t, []int64{rollout[2], grouped[0]}, b.nudged(t), "the first of the highest lane of each queue")

	b.apply(t, "ref: p.one\nthreshold: 2\naction: deploy.rollout\n")
	require.Empty(t, b.nudged(t), "nothing changed")
	b.apply(t, "ref: p.one\nthreshold: 2\naction: deploy.rollout\ndescription: words\n")
	require.Empty(t, b.nudged(t), "a description changes no limit")

	b.apply(t, "ref: p.one\nthreshold: 2\naction: other.work\n")
	require.Equal(t, []int64{rollout[2], grouped[0], worked[0]}, b.nudged(t), "the old scope and the new one")
	b.apply(t, "ref: p.two\nthreshold: 2\npack: deploy\n")
	require.Equal(t, []int64{rollout[2], grouped[0], scaled[0]}, b.nudged(t))
	b.apply(t, "ref: p.three\nthreshold: 2\n")
	require.Equal(t, []int64{rollout[2], grouped[0], scaled[0], worked[0]}, b.nudged(t))
	require.NotContains(t, b.nudged(t), paused[0])
}

// Nudges are bounded, and the sweeps find the other queues. Queues behind a shared limit come first.
func TestNudgesAreBounded(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `
		with states as (
			insert into execution_admission_state (action_id, group_key, max_concurrent, queued_count)
			select $1, g::text, 1, 1 from generate_series(1, 310) g returning id),
		numbered as (select id, row_number() over (order by id) as n from states),
		executions as (
			insert into execution (action, action_ref) select $1, 'deploy.rollout' from numbered returning id),
		waiting as (select id, row_number() over (order by id) as n from executions)
		insert into execution_admission_entry (state_id, execution_id, status, queue_order)
		select s.id, w.id, 'queued', 1 from numbered s join waiting w on w.n = s.n`, b.rollout.ID)
	testkit.Exec(t, b.store, `insert into admission_blocked (state_id, ticket)
		select state_id, id from execution_admission_entry order by id desc limit 1`)
	last := testkit.Count(t, b.store, "select execution_id from execution_admission_entry order by id desc limit 1")

	require.Equal(t, 300, b.apply(t, "ref: p.one\nthreshold: 2\n").Nudged)
	require.Contains(t, b.nudged(t), int64(last))
}

func TestApplyNamesPoliciesWithoutEffect(t *testing.T) {
	b := setup(t)
	b.apply(t, "ref: p.old\nthreshold: 2\naction: deploy.rollout\n---\nref: p.pack\nthreshold: 9\npack: deploy\n")
	superseded := func(content string, dry bool) []string {
		r := request(content)
		r.DryRun = dry
		result, err := b.catalog.Apply(t.Context(), r)
		require.NoError(t, err)
		refs := []string{}
		for _, change := range result.Changes {
			refs = append(refs, change.Superseded)
		}
		return refs
	}
	const newer = "ref: p.new\nthreshold: 3\naction: deploy.rollout\n"
	require.Equal(t, []string{""}, superseded(newer, true))
	require.Equal(t, []string{""}, superseded(newer, false))
	require.Equal(t, []string{"p.new"}, superseded("ref: p.old\nthreshold: 4\naction: deploy.rollout\n", false))
	strict := request("ref: p.old\nthreshold: 7\naction: deploy.rollout\n")
	strict.Strict = true
	_, err := b.catalog.Apply(t.Context(), strict)
	require.ErrorContains(t, err, "p.old has no effect: p.new is a newer concurrency policy of the same scope")
	require.Equal(t, []string{"", ""},
		superseded("ref: p.old\nthreshold: 4\naction: deploy.rollout\n---\nref: p.new\nthreshold: 3\n", true),
		"the newer one gets another scope")
	require.Equal(t, []string{"p.two", ""},
		superseded(
			"ref: p.one\nthreshold: 4\naction: deploy.rollout\n---\nref: p.two\nthreshold: 3\naction: deploy.rollout\n", false))
	require.Equal(t, []string{"", ""},
		superseded(
			"ref: r.one\nkind: rate\nwindow: 5\nthreshold: 4\n---\nref: r.two\nkind: rate\nwindow: 7\nthreshold: 3\n", false),
		"rates stack")
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from (
		select ref from policy where action is not null order by created desc, id desc limit 1) newest where ref = 'p.two'`),
		"the table agrees which one is the newest")
}
