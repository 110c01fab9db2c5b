package rehearsal

import (
	"context"
	_ "embed"
	"fmt"
	"time"
)

//go:embed state.sql
var stateSQL string

// thing is something that an installation holds, and what is to become of it.
type thing struct {
	execution int64
	what      string   // for people: what it is and how it was left
	want      []string // the statuses it may end with
	runs      int      // how often the worker may start it at most
}

// The workers of the installation. The live one is a process of this rehearsal.
const (
	liveWorker   = "worker-live"
	deadWorker   = "worker-dead"   // killed: active by its row, silent for ten minutes
	absentWorker = "worker-absent" // stopped: inactive by its row
)

// leave fills the installation: what its executor and worker had under way when
// the executor was stopped, and what it had lost, forgotten and miscounted.
func (r *rehearsal) leave(ctx context.Context) error {
	for _, name := range []string{deadWorker, absentWorker} {
		status, age := "active", 10*time.Minute
		if name == absentWorker {
			status, age = "inactive", time.Hour
		}
		if err := r.exec(ctx, `INSERT INTO worker (name, worker_type, worker_role, status, capabilities, last_heartbeat)
			VALUES ($1, 'remote', 'action', $2::text::worker_status_enum, '{"runtimes": ["shell"]}', now() - $3::interval)`,
			name, status, age); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{
		r.leaveQueue, r.leaveLeaks, r.leaveExecutions, r.leaveWorkflows, r.leaveQuestions, r.leaveEvents,
		r.leaveMessages,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// leaveQueue lets the executor of the installation admit six executions of an
// action with two slots: two run and stay, four wait.
func (r *rehearsal) leaveQueue(ctx context.Context) error {
	ids, err := r.ids(ctx, `INSERT INTO execution (action, action_ref, config)
		SELECT id, ref, '{"held": true}' FROM action, generate_series(1, 6) WHERE ref = 'demo.limited' RETURNING id`)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if err := r.executor.Request(ctx, id); err != nil {
			return err
		}
		what := "waits for one of two slots"
		if i < 2 {
			what = "holds one of two slots and runs"
		}
		r.expect(id, what, 1, "completed")
	}
	err = r.await(ctx, "two executions run and four wait", `SELECT
		(SELECT count(*) FROM execution_admission_entry WHERE status = 'active') = 2
		AND (SELECT count(*) FROM execution_admission_entry WHERE status = 'queued') = 4
		AND (SELECT count(*) FROM execution WHERE status = 'running') = 2`)
	r.executor.Stop()
	return err
}

// leaveLeaks leaves the only slot of an action with an execution that has ended,
// waiting executions behind it, and statistics of yesterday.
func (r *rehearsal) leaveLeaks(ctx context.Context) error {
	leak, err := r.add(ctx, "demo.leaky", "completed", "now() - interval '1 hour'", "")
	if err != nil {
		return err
	}
	if err := r.exec(ctx, `INSERT INTO execution_admission_state (action_id, max_concurrent, next_queue_order)
		SELECT id, 1, 9 FROM action WHERE ref = 'demo.leaky'`); err != nil {
		return err
	}
	if err := r.exec(ctx, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, activated_at)
		SELECT s.id, $1, 'active', 1, now() - interval '1 hour' FROM execution_admission_state s
		JOIN action a ON a.id = s.action_id AND a.ref = 'demo.leaky'`, leak); err != nil {
		return err
	}
	for order := range 3 {
		id, err := r.add(ctx, "demo.leaky", "requested", "now() - interval '50 minutes'", "")
		if err != nil {
			return err
		}
		if err := r.exec(ctx, `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order)
			SELECT s.id, $1, 'queued', $2 FROM execution_admission_state s
			JOIN action a ON a.id = s.action_id AND a.ref = 'demo.leaky'`, id, order+2); err != nil {
			return err
		}
		r.expect(id, "waits for a slot that leaked", 1, "completed")
	}
	return r.exec(ctx, `INSERT INTO queue_stats (action_id, queue_length, active_count, max_concurrent)
		SELECT id, 77, 5, 1 FROM action WHERE ref = 'demo.leaky' ON CONFLICT (action_id) DO UPDATE SET queue_length = 77, active_count = 5`)
}

// leaveExecutions leaves one execution for each way in which an executor or a
// worker can leave it.
func (r *rehearsal) leaveExecutions(ctx context.Context) error {
	for _, left := range []struct {
		what, action, status, updated, worker string
		// which message still waits, and whether the live worker has it in hand
		requested, dispatched, running bool
		runs                           int
		want                           []string
	}{
		{what: "requested, its message waits", action: "demo.work", status: "requested", updated: "now()",
			requested: true, runs: 1, want: []string{"completed"}},
		{what: "requested two hours ago, its message is lost", action: "demo.work", status: "requested",
			updated: "now() - interval '2 hours'", runs: 1, want: []string{"completed"}},
		{what: "claimed a minute ago by an executor that died", action: "demo.work", status: "scheduling",
			updated: "now() - interval '1 minute'", runs: 1, want: []string{"completed"}},
		{what: "claimed this second, its message comes again", action: "demo.work", status: "scheduling",
			updated: "now()", requested: true, runs: 1, want: []string{"completed"}},
		{what: "handed to the live worker", action: "demo.work", status: "scheduled", updated: "now()",
			worker: liveWorker, dispatched: true, runs: 1, want: []string{"completed"}},
		{what: "handed to the live worker, its message is lost", action: "demo.work", status: "scheduled",
			updated: "now() - interval '10 minutes'", worker: liveWorker, want: []string{"failed"}},
		{what: "handed to a worker that was killed", action: "demo.work", status: "scheduled",
			updated: "now() - interval '10 minutes'", worker: deadWorker, dispatched: true, want: []string{"failed"}},
		{what: "runs at a worker that was killed", action: "demo.work", status: "running",
			updated: "now() - interval '10 minutes'", worker: deadWorker, want: []string{"abandoned"}},
		{what: "runs at a worker that was stopped", action: "demo.work", status: "running",
			updated: "now() - interval '1 hour'", worker: absentWorker, want: []string{"abandoned"}},
		{what: "runs at a worker whose row was deleted", action: "demo.work", status: "running",
			updated: "now() - interval '1 hour'", want: []string{"abandoned"}},
		{what: "is being cancelled at a worker that was killed", action: "demo.work", status: "canceling",
			updated: "now() - interval '10 minutes'", worker: deadWorker, want: []string{"cancelled"}},
		{what: "requested, of an action with max_retries, fails", action: "demo.retried", status: "requested",
			updated: "now()", requested: true, runs: 1, want: []string{"failed"}},
		{what: "completed before", action: "demo.work", status: "completed", updated: "now() - interval '1 day'",
			worker: liveWorker, want: []string{"completed"}},
		{what: "failed before", action: "demo.retried", status: "failed", updated: "now() - interval '1 day'",
			worker: liveWorker, want: []string{"failed"}},
		{what: "cancelled before", action: "demo.work", status: "cancelled", updated: "now() - interval '1 day'",
			want: []string{"cancelled"}},
		{what: "abandoned before", action: "demo.work", status: "abandoned", updated: "now() - interval '1 day'",
			worker: deadWorker, want: []string{"abandoned"}},
		{what: "timed out before", action: "demo.work", status: "timeout", updated: "now() - interval '1 day'",
			want: []string{"timeout"}},
	} {
		id, err := r.add(ctx, left.action, left.status, left.updated, left.worker)
		if err != nil {
			return err
		}
		r.expect(id, left.what, left.runs, left.want...)
		if left.requested {
			if err := r.request(ctx, id); err != nil {
				return err
			}
		}
		if left.dispatched {
			if err := r.dispatch(ctx, id, left.worker); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveWorkflows leaves workflows in every phase.
func (r *rehearsal) leaveWorkflows(ctx context.Context) error {
	for _, one := range []struct{ action, what string }{
		{"demo.chain", "workflow, requested"},
		{"demo.mended", "workflow with a failure on its way, requested"},
		{"demo.round", "workflow with a way back, requested"},
	} {
		id, err := r.add(ctx, one.action, "requested", "now()", "")
		if err != nil {
			return err
		}
		r.expect(id, one.what, 0, "completed")
		if err := r.request(ctx, id); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		what, status, worker string
		reported             bool
	}{
		{"workflow whose first task is handed over", "scheduled", liveWorker, false},
		{"workflow whose first task has completed, the message waits", "completed", liveWorker, true},
		{"workflow whose first task has completed, the message is lost", "completed", liveWorker, false},
	} {
		parent, workflow, err := r.workflow(ctx, "demo.chain", "{}", one.what, "completed")
		if err != nil {
			return err
		}
		child, err := r.child(ctx, parent, workflow, "demo.work", "first", -1, one.status, one.worker)
		if err != nil {
			return err
		}
		if one.status == "scheduled" {
			err = r.dispatch(ctx, child, liveWorker)
			r.expect(child, "  its first task", 1, "completed")
		}
		if one.reported {
			err = r.completed(ctx, child)
		}
		if err != nil {
			return err
		}
	}
	if _, _, err := r.workflow(ctx, "demo.chain", "{}", "workflow that runs and has no task yet",
		"completed"); err != nil {
		return err
	}

	// All children of a list are made up front; one at a time is published.
	parent, workflow, err := r.workflow(ctx, "demo.list", `{"items": [1, 2, 3, 4]}`,
		"workflow with a list of four, one of them done", "completed")
	if err != nil {
		return err
	}
	for i, status := range []string{"completed", "scheduled", "requested", "requested"} {
		child, err := r.child(ctx, parent, workflow, "demo.work", "each", i, status, liveWorker)
		if err != nil {
			return err
		}
		if status == "scheduled" {
			if err := r.dispatch(ctx, child, liveWorker); err != nil {
				return err
			}
		}
		r.expect(child, fmt.Sprintf("  item %d of the list", i), 1, "completed")
	}

	// A cancelled workflow whose task still runs at the live worker.
	parent, workflow, err = r.workflow(ctx, "demo.gate", "{}", "workflow that is being cancelled while its task runs",
		"cancelled")
	if err != nil {
		return err
	}
	child, err := r.child(ctx, parent, workflow, "demo.gated", "holds", -1, "scheduled", liveWorker)
	if err != nil {
		return err
	}
	r.expect(child, "  its task", 1, "completed", "cancelled")
	if err := r.dispatch(ctx, child, liveWorker); err != nil {
		return err
	}
	if err := r.await(ctx, "the task of the cancelled workflow runs",
		`SELECT status = 'running' FROM execution WHERE id = $1`, child); err != nil {
		return err
	}
	return r.exec(ctx, `UPDATE execution SET status = 'canceling' WHERE id = $1`, parent)
}

// leaveQuestions leaves a question whose answer waits in a queue, and one whose
// time is over.
func (r *rehearsal) leaveQuestions(ctx context.Context) error {
	for _, one := range []struct {
		what, status, timeout, want string
	}{
		{"question that was answered, the message waits", "responded", "NULL", "completed"},
		{"question whose time is over", "pending", "now() - interval '1 minute'", "timeout"},
	} {
		id, err := r.add(ctx, "core.ask", "running", "now() - interval '5 minutes'", "")
		if err != nil {
			return err
		}
		r.expect(id, one.what, 0, one.want)
		var inquiry int64
		err = r.pool.QueryRow(ctx, `INSERT INTO inquiry (execution, prompt, status, response, timeout_at, responded_at)
			VALUES ($1, 'Go on?', $2::text::inquiry_status_enum, CASE WHEN $2 = 'responded' THEN '{"go": true}'::jsonb END, `+one.timeout+`,
				CASE WHEN $2 = 'responded' THEN now() END) RETURNING id`, id, one.status).Scan(&inquiry)
		if err != nil {
			return fmt.Errorf("leave a question: %w", err)
		}
		if one.status == "responded" {
			err = r.publish(ctx, "attune.executions", "inquiry.responded", "InquiryResponded", map[string]any{
				"inquiry_id": inquiry, "execution_id": id, "response": map[string]any{"go": true}, "responded_by": nil,
				"responded_at": time.Now().UTC(),
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveEvents leaves an event and an enforcement whose messages wait, and an
// enforcement whose message is lost.
func (r *rehearsal) leaveEvents(ctx context.Context) error {
	var event int64
	err := r.pool.QueryRow(ctx, `INSERT INTO event ("trigger", trigger_ref, payload)
		SELECT id, ref, '{"n": 1}' FROM "trigger" WHERE ref = 'demo.tick' RETURNING id`).Scan(&event)
	if err != nil {
		return fmt.Errorf("leave an event: %w", err)
	}
	r.enforcements++
	err = r.publish(ctx, "attune.events", "event.created", "EventCreated", map[string]any{
		"event_id": event, "trigger_id": nil, "trigger_ref": "demo.tick", "sensor_id": nil, "sensor_ref": nil,
		"payload": map[string]any{"n": 1}, "config": nil,
	})
	if err != nil {
		return err
	}
	for n, told := range []bool{true, false} {
		var enforcement, event int64
		err := r.pool.QueryRow(ctx, `WITH e AS (
			INSERT INTO event ("trigger", trigger_ref, payload, created)
			SELECT id, ref, jsonb_build_object('n', $1::int), now() - interval '20 minutes' FROM "trigger" WHERE ref = 'demo.tick' RETURNING id
		)
		INSERT INTO enforcement (rule, rule_ref, trigger_ref, event, config, payload, created)
		SELECT r.id, r.ref, r.trigger_ref, e.id, '{"source": "2"}', jsonb_build_object('n', $1::int), now() - interval '20 minutes'
		FROM rule r, e WHERE r.ref = 'demo.on_tick' RETURNING id, event`, n+2).Scan(&enforcement, &event)
		if err != nil {
			return fmt.Errorf("leave an enforcement: %w", err)
		}
		r.enforcements++
		if told {
			err = r.publish(ctx, "attune.executions", "enforcement.created", "EnforcementCreated", map[string]any{
				"enforcement_id": enforcement, "rule_id": nil, "rule_ref": "demo.on_tick", "event_id": event,
				"trigger_ref": "demo.tick", "payload": map[string]any{"n": n + 2},
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveMessages leaves messages that cannot be read, or that name nothing.
func (r *rehearsal) leaveMessages(ctx context.Context) error {
	for _, body := range []string{"not JSON at all", `{"payload": 7}`, "{}"} {
		if err := r.publishRaw(ctx, "attune.executions", "execution.requested", []byte(body)); err != nil {
			return err
		}
		r.broken++
	}
	return nil
}
