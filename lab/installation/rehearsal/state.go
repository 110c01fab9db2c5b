package rehearsal

import (
	"context"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/lab/installation/wire"
)

//go:embed state.sql
var stateSQL string

// executionsCSV has one execution for each way in which an executor or a worker can leave it.
//
//go:embed executions.csv
var executionsCSV string

// expectation is an execution of the installation, and how it may end.
type expectation struct {
	execution int64
	what      string   // for people: what it is and how it was left
	want      []string // the statuses it may end with
	runs      int      // the worker may start it at most so often
}

// liveWorker is a process of this rehearsal. worker-dead was killed, worker-absent was stopped.
const liveWorker = "worker-live"

// fill fills the installation: with the work in progress when the executor was stopped, and with lost
// messages, leaked slots and wrong statistics.
func (r *rehearsal) fill(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		r.fillQueue, r.fillLeaks, r.fillExecutions, r.fillWorkflows, r.fillInquiries, r.fillEvents, r.fillMessages,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fillQueue lets the executor of the installation admit six executions of an action with two slots: two
// run, four wait.
func (r *rehearsal) fillQueue(ctx context.Context) error {
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

// fillLeaks gives the only slot of an action to a completed execution, with executions waiting behind
// it and statistics of yesterday.
func (r *rehearsal) fillLeaks(ctx context.Context) error {
	const enterSQL = `INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, activated_at)
		SELECT s.id, $1, $2::text, $3, CASE WHEN $2::text = 'active' THEN now() - interval '1 hour' END
		FROM execution_admission_state s JOIN action a ON a.id = s.action_id AND a.ref = 'demo.leaky'`
	err := r.exec(ctx, `INSERT INTO execution_admission_state (action_id, max_concurrent, next_queue_order)
			SELECT id, 1, 9 FROM action WHERE ref = 'demo.leaky';
		INSERT INTO queue_stats (action_id, queue_length, active_count, max_concurrent)
			SELECT id, 77, 5, 1 FROM action WHERE ref = 'demo.leaky'
			ON CONFLICT (action_id) DO UPDATE SET queue_length = 77, active_count = 5`)
	if err != nil {
		return err
	}
	leak, err := r.add(ctx, "demo.leaky", "completed", time.Hour, "")
	if err != nil {
		return err
	}
	if err := r.exec(ctx, enterSQL, leak, "active", 1); err != nil {
		return err
	}
	for order := range 3 {
		id, err := r.add(ctx, "demo.leaky", "requested", 50*time.Minute, "")
		if err != nil {
			return err
		}
		if err := r.exec(ctx, enterSQL, id, "queued", order+2); err != nil {
			return err
		}
		r.expect(id, "waits for a slot that leaked", 1, "completed")
	}
	return nil
}

// fillExecutions adds the executions of executions.csv and publishes the messages that still wait.
func (r *rehearsal) fillExecutions(ctx context.Context) error {
	rows, err := csv.NewReader(strings.NewReader(executionsCSV)).ReadAll()
	if err != nil {
		return fmt.Errorf("read executions.csv: %w", err)
	}
	for _, row := range rows[1:] {
		what, action, status, worker, waiting, want := row[0], row[1], row[2], row[4], row[5], row[7]
		age, err := phrase.ParseSpan(row[3])
		if err != nil {
			return fmt.Errorf("read executions.csv: %w", err)
		}
		runs, err := strconv.Atoi(row[6])
		if err != nil {
			return fmt.Errorf("read executions.csv: %w", err)
		}
		id, err := r.add(ctx, action, status, age, worker)
		if err != nil {
			return err
		}
		r.expect(id, what, runs, want)
		switch waiting {
		case "requested":
			err = r.request(ctx, id)
		case "dispatched":
			err = r.dispatch(ctx, id, worker)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fillWorkflows adds workflows in every phase.
func (r *rehearsal) fillWorkflows(ctx context.Context) error {
	for _, one := range []struct{ action, what string }{
		{"demo.chain", "workflow, requested"},
		{"demo.mended", "workflow with a failure on its way, requested"},
		{"demo.round", "workflow with a way back, requested"},
	} {
		id, err := r.add(ctx, one.action, "requested", 0, "")
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
		{"workflow whose first task is dispatched", "scheduled", liveWorker, false},
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
			err = r.wire.Send(ctx, wire.Executions, "execution.completed", "ExecutionCompleted", map[string]any{
				"execution_id": child, "action_id": 0, "action_ref": "demo.work", "status": "Completed",
				"result": nil, "completed_at": time.Now().UTC(),
			})
		}
		if err != nil {
			return err
		}
	}
	if _, _, err := r.workflow(ctx, "demo.chain", "{}", "workflow that runs and has no task yet",
		"completed"); err != nil {
		return err
	}

	// The executor inserts all children of a list at once and publishes one at a time.
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

	// The task of a cancelled workflow still runs at the live worker.
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
	err = r.exec(ctx, `WITH w AS (UPDATE workflow_execution SET status = 'cancelled', error_message = 'Workflow cancelled' WHERE id = $2)
		UPDATE execution SET status = 'canceling' WHERE id = $1`, parent, workflow)
	if err != nil {
		return err
	}
	return r.fillChanged(ctx)
}

// fillChanged adds a workflow whose first execution retention has deleted, and whose definition changed meanwhile.
func (r *rehearsal) fillChanged(ctx context.Context) error {
	parent, workflow, err := r.workflow(ctx, "demo.changed", "{}", "workflow whose definition has changed, its first task deleted",
		"completed")
	if err != nil {
		return err
	}
	child, err := r.child(ctx, parent, workflow, "demo.work", "second", -1, "scheduled", liveWorker)
	if err != nil {
		return err
	}
	r.expect(child, "  its second task", 1, "completed")
	err = r.exec(ctx, `UPDATE workflow_execution SET completed_tasks = '{first}', current_tasks = '{second}' WHERE id = $1`, workflow)
	if err != nil {
		return err
	}
	err = r.exec(ctx, `UPDATE workflow_definition SET definition = '{"version": "2", "tasks": [{"name": "other", "action": "demo.gone"}]}'
		WHERE ref = 'demo.changed'`)
	if err != nil {
		return err
	}
	return r.dispatch(ctx, child, liveWorker)
}

// fillInquiries adds an inquiry whose response waits in a queue, and one past its timeout.
func (r *rehearsal) fillInquiries(ctx context.Context) error {
	for _, one := range []struct {
		what, status, timeout, want string
	}{
		{"question that was answered, the message waits", "responded", "NULL", "completed"},
		{"question whose time is over", "pending", "now() - interval '1 minute'", "timeout"},
	} {
		id, err := r.add(ctx, "core.ask", "running", 5*time.Minute, "")
		if err != nil {
			return err
		}
		r.expect(id, one.what, 0, one.want)
		var inquiry int64
		err = r.pool.QueryRow(ctx, `INSERT INTO inquiry (execution, prompt, status, response, timeout_at, responded_at)
			VALUES ($1, 'Go on?', $2::text::inquiry_status_enum, CASE WHEN $2 = 'responded' THEN '{"go": true}'::jsonb END, `+one.timeout+`,
				CASE WHEN $2 = 'responded' THEN now() END) RETURNING id`, id, one.status).Scan(&inquiry)
		if err != nil {
			return fmt.Errorf("add an inquiry: %w", err)
		}
		if one.status == "responded" {
			err = r.wire.Send(ctx, wire.Executions, "inquiry.responded", "InquiryResponded", map[string]any{
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

// fillEvents adds an event and an enforcement whose messages wait, and an enforcement whose message is
// lost.
func (r *rehearsal) fillEvents(ctx context.Context) error {
	var event int64
	err := r.pool.QueryRow(ctx, `INSERT INTO event ("trigger", trigger_ref, payload)
		SELECT id, ref, '{"n": 1}' FROM "trigger" WHERE ref = 'demo.tick' RETURNING id`).Scan(&event)
	if err != nil {
		return fmt.Errorf("add an event: %w", err)
	}
	r.enforcements++
	err = r.wire.Send(ctx, wire.Events, "event.created", "EventCreated", map[string]any{
		"event_id": event, "trigger_id": nil, "trigger_ref": "demo.tick", "sensor_id": nil, "sensor_ref": nil,
		"payload": map[string]any{"n": 1}, "config": nil,
	})
	if err != nil {
		return err
	}
	for n, published := range []bool{true, false} {
		var enforcement, event int64
		err := r.pool.QueryRow(ctx, `WITH e AS (
			INSERT INTO event ("trigger", trigger_ref, payload, created)
			SELECT id, ref, jsonb_build_object('n', $1::int), now() - interval '20 minutes' FROM "trigger" WHERE ref = 'demo.tick' RETURNING id
		)
		INSERT INTO enforcement (rule, rule_ref, trigger_ref, event, config, payload, created)
		SELECT r.id, r.ref, r.trigger_ref, e.id, '{"source": "2"}', jsonb_build_object('n', $1::int), now() - interval '20 minutes'
		FROM rule r, e WHERE r.ref = 'demo.on_tick' RETURNING id, event`, n+2).Scan(&enforcement, &event)
		if err != nil {
			return fmt.Errorf("add an enforcement: %w", err)
		}
		r.enforcements++
		if published {
			err = r.wire.Send(ctx, wire.Executions, "enforcement.created", "EnforcementCreated", map[string]any{
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

// fillMessages publishes messages that are unreadable or name nothing.
func (r *rehearsal) fillMessages(ctx context.Context) error {
	for _, body := range []string{"not JSON at all", `{"payload": 7}`, "{}"} {
		err := r.wire.SendRaw(ctx, wire.Executions, "execution.requested", uuid.NewString(), []byte(body))
		if err != nil {
			return err
		}
		r.broken++
	}
	return nil
}

// request publishes execution.requested for an execution.
func (r *rehearsal) request(ctx context.Context, id int64) error {
	var action, parent *int64
	var ref string
	var config json.RawMessage
	err := r.pool.QueryRow(ctx, "SELECT action, action_ref, parent, config FROM execution WHERE id = $1",
		id).Scan(&action, &ref, &parent, &config)
	if err != nil {
		return fmt.Errorf("read execution %d: %w", id, err)
	}
	return r.wire.Send(ctx, wire.Executions, "execution.requested", "ExecutionRequested", map[string]any{
		"execution_id": id, "action_id": action, "action_ref": ref, "parent_id": parent, "enforcement_id": nil,
		"config": config,
	})
}

// dispatch publishes the dispatch of an execution into the queue of a worker, which need not run.
func (r *rehearsal) dispatch(ctx context.Context, id int64, name string) error {
	var worker int64
	var ref string
	err := r.pool.QueryRow(ctx, "SELECT w.id, e.action_ref FROM worker w, execution e WHERE w.name = $1 AND e.id = $2",
		name, id).Scan(&worker, &ref)
	if err != nil {
		return fmt.Errorf("read worker %s: %w", name, err)
	}
	if err := wire.Declare(r.wire.Channel, wire.Dispatches(worker, 5*time.Minute)); err != nil {
		return err
	}
	return r.wire.Send(ctx, wire.Executions, wire.DispatchKey(worker), "ExecutionRequested", map[string]any{
		"execution_id": id, "worker_id": worker, "action_ref": ref, "config": nil,
		"scheduled_attempt_updated_at": time.Now().UTC(),
	})
}
