package alerting_test

import (
	"errors"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/monitortest"
)

// addDeadLetters puts waiting dead letters into the ledger.
func (b *bundle) addDeadLetters(n int) {
	b.t.Helper()
	b.exec(
		`insert into dead_letter (fingerprint, reason) select 'f' || g, 'expired' from generate_series(1, $1::int) g`, n)
}

func (b *bundle) noDeadLetters() { b.t.Helper(); b.exec(`delete from dead_letter`) }

// replica puts a replica of the engine into its table.
func (b *bundle) replica(age time.Duration, loops, details string) {
	b.t.Helper()
	b.exec(`insert into engine_replica (id, host, version, pid, state, started, last_seen, loops, details)
		values ('0194fdc2-fa2f-4cc0-81d3-ff12045b73c8', 'h', 'v', 7, 'connected', now() - interval '1 hour', now() - make_interval(secs => $1), $2, $3)`,
		age.Seconds(), loops, details)
}

const short = "0194fdc2" // how the replica is called

func (b *bundle) probed(ready int, health string) {
	b.t.Helper()
	w := testkit.Worker(b.t, b.store, "w1")
	b.exec(`insert into worker_probe (worker, verdict, health, ready) values ($1, 'fresh', $2, $3)`, w.ID, health,
		ready)
}

func (b *bundle) execution(status lifecycle.Status, age time.Duration) {
	b.t.Helper()
	action := testkit.Action(b.t, b.store, "demo.sleep")
	testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) { r.Status, r.Age = status, age })
}

// queue makes a queue in which executions wait.
func (b *bundle) queue(options ...func(*testkit.StateRow)) testkit.StateRow {
	b.t.Helper()
	return testkit.State(b.t, b.store, testkit.Action(b.t, b.store, "demo.sleep"), 2, options...)
}

// waits puts an execution at the head of a queue, where it has waited for so long.
func (b *bundle) waits(q testkit.StateRow, age time.Duration) {
	b.t.Helper()
	e := testkit.Execution(b.t, b.store, testkit.ActionRow{ID: q.Action, Ref: "demo.sleep"})
	b.exec(`insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
		values ($1, $2, 'queued', 1, now() - make_interval(secs => $3))`, q.ID, e.ID, age.Seconds())
}

// filled is the case of a rule about a queue with so many waiting, and so many where
// it no longer holds.
func filled(waiting, well int) alertCase {
	return alertCase{
		target: "demo.sleep",
		make:   func(b *bundle) { b.queue(func(r *testkit.StateRow) { r.Queued = int32(waiting) }) },
		undo:   func(b *bundle) { b.exec(`update execution_admission_state set queued_count = $1`, well) },
	}
}

type alertCase struct {
	target     string
	own        bool // on a schema of our own, whose event table has partitions
	make, undo func(b *bundle)
}

// cases makes the condition of every built-in rule true and false again.
var cases = map[string]alertCase{
	"high_execution_timeout_rate": {
		make: func(b *bundle) {
			b.exec(`insert into lost_work (cause, outcome, execution, attempt, action_ref) select 'scheduled_timeout', 'failed', g, 1, 'a.b' from generate_series(1, 11) g`)
		},
		undo: func(b *bundle) { b.exec(`update lost_work set at = now() - interval '2 minutes'`) },
	},
	"action_failing": {
		target: "demo.sleep",
		make: func(b *bundle) {
			action := testkit.Action(b.t, b.store, "demo.sleep")
			for range 12 {
				testkit.Execution(b.t, b.store, action,
					func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusFailed })
			}
			for range 11 {
				testkit.Execution(b.t, b.store, action,
					func(r *testkit.ExecutionRow) { r.Status = lifecycle.StatusCompleted })
			}
		},
		undo: func(b *bundle) {
			b.exec(`update execution set finished_at = now() - interval '6 minutes' where id in (select id from execution where action_ref = 'demo.sleep' order by id limit 2)`)
			b.exec(`delete from activity_minute`) // counted a moment ago, which is not repeated
		},
	},
	"rule_failing": {
		target: "pk.on_push",
		make: func(b *bundle) {
			b.exec(`insert into event_matched (event, rules, matched, failures) values (7, 1, 0, '{"rule pk.on_push: conditions.expression: column 1: event.payload has no field n"}')`)
			b.exec(`insert into enforcement (rule_ref, trigger_ref, payload, status, error) values
				('pk.on_push', 'pk.push', '{}', 'disabled', 'rule pk.on_push: action: pk.gone does not exist'), ('pk.fine', 'pk.push', '{}', 'processed', null)`)
		},
		undo: func(b *bundle) {
			b.exec(`delete from event_matched`)
			b.exec(`update enforcement set created = now() - interval '16 minutes'`)
		},
	},
	"rule_rate": {
		target: "pk.loops",
		make: func(b *bundle) {
			b.exec(`insert into enforcement (rule_ref, trigger_ref, payload, status)
				select case when g % 100 = 0 then 'pk.fine' else 'pk.loops' end, 'pk.push', '{}', 'processed' from generate_series(1, 1100) g`)
		},
		undo: func(b *bundle) { b.exec(`update enforcement set created = now() - interval '2 minutes'`) },
	},
	"work_queue_waits": {
		target: "jobs.import",
		make: func(b *bundle) {
			b.exec(
				`insert into work_queue (ref, label, dispatch_action_ref) values ('jobs.import', 'Import', 'jobs.run')`)
			b.exec(`insert into work_queue_item (queue, queue_ref, payload, enqueue_source) select id, ref, '{}', 'api' from work_queue`)
		},
		undo: func(b *bundle) { b.exec(`update work_queue_item set status = 'completed'`) },
	},
	"no_active_workers": {
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "kept", func(r *testkit.WorkerRow) { r.Cordoned = true })
		},
		undo: func(b *bundle) { b.exec(`update worker set cordoned = false`) },
	},
	"stale_executions": {
		make: func(b *bundle) { b.execution(lifecycle.StatusScheduled, 6*time.Minute) },
		undo: func(b *bundle) { b.exec(`update execution set status = 'running' where action_ref = 'demo.sleep'`) },
	},
	"exec_stuck": {
		make: func(b *bundle) { b.execution(lifecycle.StatusScheduled, 11*time.Minute) },
		undo: func(b *bundle) { b.exec(`update execution set status = 'running' where action_ref = 'demo.sleep'`) },
	},
	"dlq_buildup": {
		make: func(b *bundle) { b.addDeadLetters(51); b.probe.set(func(p *fakeProbe) { p.depth = 50 }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.depth = 49 }) },
	},
	"dlq_depth_critical": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.depth = 101 }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.depth = 100 }) },
	},
	"dlq_depth_warning": {
		make: func(b *bundle) { b.addDeadLetters(11) },
		undo: func(b *bundle) { b.exec(`update dead_letter set decision = 'failed' where fingerprint = 'f1'`) },
	},
	"dlq_waiting": {
		make: func(b *bundle) { b.addDeadLetters(1) },
		undo: (*bundle).noDeadLetters,
	},
	"dlq_rate_warning": {
		make: func(b *bundle) { b.addDeadLetters(26) },
		undo: func(b *bundle) {
			b.exec(`update dead_letter set created = now() - interval '6 minutes' where fingerprint in ('f1', 'f2')`)
		},
	},
	"dlq_rate_critical": {
		make: func(b *bundle) { b.addDeadLetters(101) },
		undo: (*bundle).noDeadLetters,
	},
	"dlq_growth": { // how it is measured over minutes is tested where it is
		make: func(b *bundle) {
			b.view.edit = func(m *alerting.Measures) {
				m.Samples["dead_letters_growth"] = []alerting.Sample{{Value: 1}}
			}
		},
		undo: func(b *bundle) {
			b.view.edit = func(m *alerting.Measures) {
				m.Samples["dead_letters_growth"] = []alerting.Sample{{Value: 0}}
			}
		},
	},
	"dlq_routes_lost": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.lost = []string{"execution.dispatch.worker.7"} }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.lost = nil }) },
	},
	"other_executor": {
		make: func(b *bundle) {
			b.probe.set(func(p *fakeProbe) { p.others = []string{"executor.scheduler consumes a queue"} })
		},
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.others = nil }) },
	},
	"topology": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.missing = []string{"exchange attune.dlx"} }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.missing = nil }) },
	},
	"broker_alarm": {
		make: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.alarms = []string{"memory on rabbit@a"} }) },
		undo: func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.alarms = nil }) },
	},
	"unmeasured": {
		target: "dead_letter_depth",
		make:   func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.err = errors.New("cut off") }) },
		undo:   func(b *bundle) { b.probe.set(func(p *fakeProbe) { p.err = nil }) },
	},
	"worker_queue_warning": {
		target: "w1",
		make:   func(b *bundle) { b.probed(50, "healthy") },
		undo:   func(b *bundle) { b.exec(`update worker_probe set ready = 49`) },
	},
	"worker_queue_critical": {
		target: "w1",
		make:   func(b *bundle) { b.probed(100, "healthy") },
		undo:   func(b *bundle) { b.exec(`update worker_probe set ready = 99`) },
	},
	"unhealthy_workers": {
		make: func(b *bundle) { b.probed(0, "unhealthy") },
		undo: func(b *bundle) { testkit.Worker(b.t, b.store, "w2") },
	},
	"worker_heartbeat": {
		target: "ill",
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "ill", func(r *testkit.WorkerRow) { r.HeartbeatAge = 2 * time.Minute })
		},
		undo: func(b *bundle) { b.exec(`update worker set last_heartbeat = now()`) },
	},
	"worker_restarts": {
		target: "shaky",
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "shaky")
			for range 3 {
				b.exec(`update worker set capabilities = coalesce(capabilities, '{}')
					|| jsonb_build_object('registered_at', extract(epoch from clock_timestamp()))`)
			}
		},
		undo: func(b *bundle) { b.exec(`delete from worker_history`) },
	},
	"worker_suspect": {
		target: "mute",
		make: func(b *bundle) {
			testkit.Worker(b.t, b.store, "mute")
			b.exec(`update worker set suspect_since = now(), suspect_reason = 'its queue is gone'`)
		},
		undo: func(b *bundle) { b.exec(`update worker set suspect_since = null`) },
	},
	"workers_missing": {
		make: func(b *bundle) {
			q := b.queue(func(r *testkit.StateRow) { r.Queued = 1 })
			b.exec(`insert into admission_blocked (state_id, ticket, reason) values ($1, 1, 'no compatible worker: 1 has not the runtime')`, q.ID)
		},
		undo: func(b *bundle) {
			b.exec(`update admission_blocked set reason = 'waiting for a worker: the only fitting worker is busy'`)
		},
	},
	"queue_head_wait": {
		target: "demo.sleep",
		make: func(b *bundle) {
			b.waits(b.queue(func(r *testkit.StateRow) { r.Queued = 1 }), 11*time.Minute)
		},
		undo: func(b *bundle) { b.exec(`update execution_admission_entry set enqueued_at = now()`) },
	},
	"queue_length": filled(101, 100),
	"queue_timeouts_ahead": {
		target: "demo.sleep",
		make: func(b *bundle) { // one at a time for a minute each; after two of three minutes three wait
			b.replica(0, "{}", "{}")
			action, w := testkit.Action(b.t, b.store, "demo.sleep"), testkit.Worker(b.t, b.store, "w1")
			for range 5 {
				testkit.Execution(b.t, b.store, action, monitortest.Status(lifecycle.StatusCompleted))
			}
			b.exec(`alter table execution disable trigger user`)
			b.exec(`update execution set created = now() - interval '1 hour', admitted_at = now() - interval '1 minute',
				started_at = now() - interval '1 minute', finished_at = now() where action_ref = 'demo.sleep'`)
			(&monitortest.Fixture{Store: b.store}).AddQueue(b.t, action, 1, 1, 3, w.ID)
			b.exec(`update execution_admission_state set queue_timeout_seconds = 180`)
		},
		undo: func(b *bundle) { b.exec(`update execution_admission_state set queue_timeout_seconds = 3600`) },
	},
	"queue_fill_info":     filled(1001, 1000),
	"queue_fill_warning":  filled(5001, 5000),
	"queue_fill_critical": filled(8001, 8000),
	"queue_growth": { // how it is measured over minutes is tested where it is
		target: "demo.sleep",
		make: func(b *bundle) {
			b.view.edit = func(m *alerting.Measures) {
				m.Samples["queue_growth"] = []alerting.Sample{{Target: "demo.sleep", Value: 1001}}
			}
		},
		undo: func(b *bundle) {
			b.view.edit = func(m *alerting.Measures) {
				m.Samples["queue_growth"] = []alerting.Sample{{Target: "demo.sleep", Value: 1000}}
			}
		},
	},
	"queue_idle_slots": {
		target: "demo.sleep",
		make: func(b *bundle) {
			b.waits(b.queue(func(r *testkit.StateRow) { r.Queued, r.Active = 1, 1 }), 6*time.Minute)
		},
		undo: func(b *bundle) { b.exec(`update execution_admission_state set active_count = 2`) },
	},
	"limit_lowered": {
		target: "demo.sleep",
		make: func(b *bundle) {
			q := b.queue(func(r *testkit.StateRow) { r.Queued, r.Active = 1, 2 })
			testkit.Policy(b.t, b.store, testkit.ActionRow{ID: q.Action, Ref: "demo.sleep"}, 4)
			b.exec(`update execution_admission_state set limit_override = 2`)
			b.waits(q, 6*time.Minute)
		},
		undo: func(b *bundle) { b.exec(`update execution_admission_state set limit_override = null`) },
	},
	"queue_head_wait_critical": {
		target: "demo.sleep",
		make:   func(b *bundle) { b.waits(b.queue(func(r *testkit.StateRow) { r.Queued = 1 }), 31*time.Minute) },
		undo: func(b *bundle) {
			b.exec(`update execution_admission_entry set enqueued_at = now() - interval '29 minutes'`)
		},
	},
	"workers_vanish": {
		make: func(b *bundle) {
			for _, name := range []string{"a", "b", "c"} {
				testkit.Worker(b.t, b.store, name, func(r *testkit.WorkerRow) { r.HeartbeatAge = 2 * time.Minute })
			}
			b.exec(`update worker set status = 'inactive', deactivated_at = now()`)
		},
		undo: func(b *bundle) {
			b.exec(`update worker set deactivated_at = now() - interval '6 minutes' where name = 'a'`)
		},
	},
	"queue_paused": {
		target: "demo.sleep",
		make:   func(b *bundle) { b.queue(func(r *testkit.StateRow) { r.Queued, r.Paused = 1, true }) },
		undo:   func(b *bundle) { b.exec(`update execution_admission_state set paused = false`) },
	},
	"paused_long": {
		target: "demo.sleep",
		make: func(b *bundle) {
			b.waits(b.queue(func(r *testkit.StateRow) { r.Queued, r.Paused = 1, true }), 2*time.Hour)
		},
		undo: func(b *bundle) { b.exec(`update execution_admission_state set paused_at = now()`) },
	},
	"retry_rate": {
		make: func(b *bundle) {
			action := testkit.Action(b.t, b.store, "demo.sleep")
			for i := range 20 {
				testkit.Execution(b.t, b.store, action, func(r *testkit.ExecutionRow) { r.RetryCount = int32(i / 15) })
			}
		},
		undo: func(b *bundle) { b.exec(`update execution set retry_count = 0 where action_ref = 'demo.sleep'`) },
	},
	"leaked_slot": {
		make: func(b *bundle) {
			q := b.queue(func(r *testkit.StateRow) { r.Active = 1 })
			testkit.Execution(b.t, b.store, testkit.ActionRow{ID: q.Action, Ref: "demo.sleep"},
				func(r *testkit.ExecutionRow) {
					r.Status, r.AdmissionState = lifecycle.StatusCompleted, &q.ID
				})
			b.exec(`update execution set finished_at = now() - interval '2 minutes' where action_ref = 'demo.sleep'`)
		},
		undo: func(b *bundle) { b.exec(`delete from execution_holder`) },
	},
	"no_replica": {
		make: func(*bundle) {},
		undo: func(b *bundle) { b.replica(0, "{}", "{}") },
	},
	"replica_silent": {
		target: short,
		make:   func(b *bundle) { b.replica(31*time.Second, "{}", "{}") },
		undo:   func(b *bundle) { b.exec(`update engine_replica set last_seen = now()`) },
	},
	"replica_unwell": {
		target: short,
		make: func(b *bundle) {
			b.replica(0, "{}", `{"clock": "2026-01-01T00:00:10Z", "connections": [{"purpose": "publish", "up": true, "blocked": true, "reason": "memory", "since": "2026-01-01T00:00:00Z"}]}`)
		},
		undo: func(b *bundle) { b.exec(`update engine_replica set details = '{}'`) },
	},
	"installation_fault": {
		target: short,
		make: func(b *bundle) {
			b.replica(0, "{}", `{"clock": "2026-01-01T00:00:10Z", "installation": [{"source": "rounds", "problem": "column e.x does not exist (SQLSTATE 42703)", "fix": "add it", "since": "2026-01-01T00:00:00Z"}]}`)
		},
		undo: func(b *bundle) { b.exec(`update engine_replica set details = '{}'`) },
	},
	"loop_late": {
		target: short + "/recovery",
		make: func(b *bundle) {
			b.replica(0, `{"recovery": "2026-01-01T00:00:00Z"}`,
				`{"clock": "2026-01-01T00:02:00Z", "loops": {"recovery": {"patience_ns": 60000000000}}}`)
		},
		undo: func(b *bundle) { b.exec(`update engine_replica set loops = '{"recovery": "2026-01-01T00:01:59Z"}'`) },
	},
	"outbox_age": {
		make: func(b *bundle) {
			b.exec(`insert into outbox (created, last_error, message_ids, exchanges, routing_keys, message_types, bodies, traces)
				values (now() - interval '31 seconds', 'a queue is full', '{}', '{}', '{}', '{}', '{}', '{}')`)
		},
		undo: func(b *bundle) { b.exec(`delete from outbox`) },
	},
	"partition_missing": {
		target: "event",
		own:    true,
		make: func(b *bundle) {
			b.exec(`do $$ begin execute format('drop table event_p%s', to_char((now() + interval '1 day') at time zone 'utc', 'YYYYMMDD')); end $$`)
		},
		undo: func(b *bundle) { b.exec(`select attune_partitions_ahead('event', 1, 7)`) },
	},
}
