package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/lab/installation/wire"
	"github.com/attune-go/attune/lab/query"
)

// execution is the part of a row that scheduling reads.
type execution struct {
	id        int64
	status    string
	action    *int64
	actionRef string
	config    json.RawMessage
}

// schedule handles execution.requested.
func (e *Executor) schedule(ctx context.Context, id int64) error {
	x := execution{id: id}
	err := e.pool.QueryRow(ctx, "SELECT status::text, action, action_ref, config FROM execution WHERE id = $1", id).
		Scan(&x.status, &x.action, &x.actionRef, &x.config)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read execution %d: %w", id, err)
	}
	if x.status != "requested" && x.status != "scheduling" {
		return e.leave(ctx, id, "queued", frontWithSlotSQL)
	}
	tag, err := e.pool.Exec(ctx, `UPDATE execution SET status = 'scheduling' WHERE id = $1 AND status::text = $2
		AND (status = 'requested' OR updated <= now() - make_interval(secs => $3::float8))`,
		id, x.status, claimStale.Seconds())
	switch {
	case err != nil:
		return fmt.Errorf("claim execution %d: %w", id, err)
	case tag.RowsAffected() == 0:
		return errClaimed
	}
	return e.claimed(ctx, x)
}

// claimed admits and dispatches an execution in scheduling.
func (e *Executor) claimed(ctx context.Context, x execution) error {
	var action, pack int64
	var workflow bool
	var schema json.RawMessage
	err := e.pool.QueryRow(ctx, `SELECT id, pack, workflow_def IS NOT NULL, param_schema FROM action
		WHERE id = $1 OR $1 IS NULL AND ref = $2`, x.action, x.actionRef).Scan(&action, &pack, &workflow, &schema)
	if err != nil {
		return fmt.Errorf("read the action of execution %d: %w", x.id, err)
	}
	if workflow {
		return fmt.Errorf("execution %d is a workflow, and this executor starts none", x.id)
	}
	params := withDefaults(x.config, schema)
	limit, err := e.policyOf(ctx, action, pack)
	if err != nil {
		return err
	}
	if limit != nil {
		acquired, err := e.enqueue(ctx, x.id, action, groupKey(limit.parameters, params), *limit)
		switch {
		case err != nil:
			return err
		case !acquired && limit.method == "cancel":
			return e.end(ctx, x, "cancelled", "concurrency limit exceeded")
		case !acquired:
			_, err := e.pool.Exec(ctx,
				"UPDATE execution SET status = 'requested' WHERE id = $1 AND status = 'scheduling'", x.id)
			return err
		}
	}
	worker, err := e.pick(ctx)
	if err != nil {
		return err
	}
	if worker == 0 {
		return errors.Join(e.end(ctx, x, "failed", "no workers available"), e.release(ctx, x.id))
	}
	return e.dispatch(ctx, x, worker, params)
}

func (e *Executor) dispatch(ctx context.Context, x execution, worker int64, params map[string]any) error {
	var updated time.Time
	err := e.pool.QueryRow(ctx, `UPDATE execution SET status = 'scheduled', worker = $2
		WHERE id = $1 AND status = 'scheduling' RETURNING updated`, x.id, worker).Scan(&updated)
	if errors.Is(err, pgx.ErrNoRows) {
		return e.release(ctx, x.id)
	}
	if err != nil {
		return fmt.Errorf("schedule execution %d: %w", x.id, err)
	}
	return e.wire.Send(ctx, wire.Executions, wire.DispatchKey(worker), "ExecutionRequested", map[string]any{
		"execution_id": x.id, "worker_id": worker, "action_ref": x.actionRef, "config": params,
		"scheduled_attempt_updated_at": updated,
	})
}

// complete handles execution.completed.
func (e *Executor) complete(ctx context.Context, id int64) error {
	if err := e.advance(ctx, id); err != nil {
		return err
	}
	return e.release(ctx, id)
}

func (e *Executor) end(ctx context.Context, x execution, status, why string) error {
	result, err := json.Marshal(map[string]any{"error": why, "message": why, "action_ref": x.actionRef})
	if err != nil {
		return fmt.Errorf("encode a result: %w", err)
	}
	_, err = e.pool.Exec(ctx,
		"UPDATE execution SET status = $2::text::execution_status_enum, result = $3::jsonb WHERE id = $1",
		x.id, status, string(result))
	if err != nil {
		return fmt.Errorf("end execution %d: %w", x.id, err)
	}
	var action int64
	if x.action != nil {
		action = *x.action
	}
	return e.wire.Send(ctx, wire.Executions, "execution.completed", "ExecutionCompleted", map[string]any{
		"execution_id": x.id, "action_id": action, "action_ref": x.actionRef, "status": status,
		"result": json.RawMessage(result), "completed_at": time.Now().UTC(),
	})
}

// pick returns the next live worker in turn, 0 if none lives.
func (e *Executor) pick(ctx context.Context) (int64, error) {
	live, err := query.Column[int64](ctx, e.pool, "list workers", `SELECT id FROM worker WHERE worker_role = 'action' AND status = 'active'
		AND NOT cordoned AND last_heartbeat BETWEEN now() - interval '90 seconds' AND clock_timestamp() ORDER BY name`)
	if err != nil || len(live) == 0 {
		return 0, err
	}
	e.turn++
	return live[e.turn%len(live)], nil
}
