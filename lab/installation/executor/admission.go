package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// limit is the policy that applies to an action.
type limit struct {
	threshold  int
	method     string
	parameters []string
}

// policyOf returns the newest policy of the action, else of its pack, else of all actions.
func (e *Executor) policyOf(ctx context.Context, action, pack int64) (*limit, error) {
	var l limit
	err := e.pool.QueryRow(ctx, `SELECT threshold, method::text, parameters FROM policy
		WHERE action = $1 OR action IS NULL AND (pack = $2 OR pack IS NULL)
		ORDER BY (action IS NOT NULL) DESC, (pack IS NOT NULL) DESC, created DESC LIMIT 1`, action, pack).
		Scan(&l.threshold, &l.method, &l.parameters)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy of action %d: %w", action, err)
	}
	return &l, nil
}

func withDefaults(config, schema json.RawMessage) map[string]any {
	params := map[string]any{}
	_ = json.Unmarshal(config, &params) // anything but an object counts as empty
	if params == nil {
		params = map[string]any{}
	}
	var fields map[string]struct {
		Default any `json:"default"`
	}
	_ = json.Unmarshal(schema, &fields)
	for name, field := range fields {
		if params[name] == nil && field.Default != nil {
			params[name] = field.Default
		}
	}
	return params
}

// groupKey returns the compact JSON object of path and value, keys sorted bytewise.
func groupKey(paths []string, params map[string]any) *string {
	if len(paths) == 0 {
		return nil
	}
	values := map[string]any{}
	for _, path := range paths {
		var value any = params
		for part := range strings.SplitSeq(path, ".") {
			fields, _ := value.(map[string]any)
			value = fields[part]
		}
		values[path] = value
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, path := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(compact(path) + ":" + compact(values[path]))
	}
	key := b.String() + "}"
	return &key
}

func compact(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) //nolint:errchkjson // the value was decoded from JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// enqueue acquires a slot or leaves the execution in its queue. It activates a queued execution only
// at the front and below the limit.
func (e *Executor) enqueue(ctx context.Context, id, action int64, group *string, l limit) (acquired bool, err error) {
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		var state int64
		err := tx.QueryRow(ctx, `INSERT INTO execution_admission_state (action_id, group_key, max_concurrent) VALUES ($1, $2, $3)
			ON CONFLICT (action_id, group_key_normalized) DO UPDATE SET max_concurrent = excluded.max_concurrent
			RETURNING id`, action, group, l.threshold).Scan(&state)
		if err != nil {
			return err
		}
		var active, queued int
		var mine string
		var front bool
		err = tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status = 'queued'),
				coalesce(max(status) FILTER (WHERE execution_id = $2), ''),
				coalesce(min(queue_order) FILTER (WHERE status = 'queued')
					= min(queue_order) FILTER (WHERE execution_id = $2), false)
			FROM execution_admission_entry WHERE state_id = $1`, state, id).Scan(&active, &queued, &mine, &front)
		if err != nil {
			return err
		}
		switch {
		case mine == "active":
			acquired = true
			return nil
		case mine == "queued" && front && active < l.threshold:
			acquired = true
			_, err = tx.Exec(ctx, `UPDATE execution_admission_entry SET status = 'active', activated_at = now()
				WHERE execution_id = $1`, id)
		case mine == "queued":
			return nil
		default:
			acquired = active < l.threshold && queued == 0
			if !acquired && l.method == "cancel" {
				return nil
			}
			_, err = tx.Exec(ctx, `WITH s AS (UPDATE execution_admission_state
					SET next_queue_order = next_queue_order + 1, total_enqueued = total_enqueued + 1
					WHERE id = $1 RETURNING next_queue_order - 1 AS place)
				INSERT INTO execution_admission_entry (state_id, execution_id, status, queue_order, activated_at)
				SELECT $1, $2, CASE WHEN $3 THEN 'active' ELSE 'queued' END, s.place, CASE WHEN $3 THEN now() END FROM s`,
				state, id, acquired)
		}
		if err != nil {
			return err
		}
		return refreshStats(ctx, tx, state)
	})
	if err != nil {
		return false, fmt.Errorf("admit execution %d: %w", id, err)
	}
	return acquired, nil
}

// release releases the slot of an execution and promotes the front of its queue. Without an active
// entry it does nothing.
func (e *Executor) release(ctx context.Context, id int64) error {
	return e.leave(ctx, id, "active", frontSQL)
}

// frontSQL selects the first queued execution, frontWithSlotSQL only if a slot is free.
const (
	frontSQL = `SELECT execution_id FROM execution_admission_entry
		WHERE state_id = $1 AND status = 'queued' ORDER BY queue_order LIMIT 1`
	frontWithSlotSQL = `SELECT execution_id FROM execution_admission_entry
		WHERE state_id = $1 AND status = 'queued'
		  AND (SELECT count(*) FROM execution_admission_entry WHERE state_id = $1 AND status = 'active')
			< (SELECT max_concurrent FROM execution_admission_state WHERE id = $1)
		ORDER BY queue_order LIMIT 1`
)

// leave deletes the entry of an execution, promotes the execution that the query next selects, and
// publishes it after the commit.
func (e *Executor) leave(ctx context.Context, id int64, status, next string) error {
	var promoted int64
	err := pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		promoted = 0
		var state int64
		err := tx.QueryRow(ctx, `SELECT state_id FROM execution_admission_entry
			WHERE execution_id = $1 AND status = $2 FOR UPDATE`, id, status).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		// The update also locks the queue.
		_, err = tx.Exec(ctx,
			"UPDATE execution_admission_state SET total_completed = total_completed + 1 WHERE id = $1", state)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM execution_admission_entry WHERE execution_id = $1", id); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, next, state).Scan(&promoted)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if promoted != 0 {
			_, err = tx.Exec(ctx, `UPDATE execution_admission_entry SET status = 'active', activated_at = now()
				WHERE execution_id = $1`, promoted)
			if err != nil {
				return err
			}
		}
		return refreshStats(ctx, tx, state)
	})
	if err != nil {
		return fmt.Errorf("release execution %d: %w", id, err)
	}
	if promoted == 0 {
		return nil
	}
	return e.Request(ctx, promoted)
}

func refreshStats(ctx context.Context, tx pgx.Tx, state int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO queue_stats
			(action_id, queue_length, active_count, max_concurrent, oldest_enqueued_at, total_enqueued, total_completed, last_updated)
		SELECT s.action_id, coalesce(sum(n.queued), 0), coalesce(sum(n.active), 0), sum(s.max_concurrent), min(n.oldest),
			sum(s.total_enqueued), sum(s.total_completed), now()
		FROM execution_admission_state s
		CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE q.status = 'queued') AS queued, count(*) FILTER (WHERE q.status = 'active') AS active,
				min(q.enqueued_at) FILTER (WHERE q.status = 'queued') AS oldest
			FROM execution_admission_entry q WHERE q.state_id = s.id) n
		WHERE s.action_id = (SELECT action_id FROM execution_admission_state WHERE id = $1)
		GROUP BY s.action_id
		ON CONFLICT (action_id) DO UPDATE SET queue_length = excluded.queue_length, active_count = excluded.active_count,
			max_concurrent = excluded.max_concurrent, oldest_enqueued_at = excluded.oldest_enqueued_at,
			total_enqueued = excluded.total_enqueued, total_completed = excluded.total_completed, last_updated = now()`, state)
	return err
}
