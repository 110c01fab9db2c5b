package migrations

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// WorkQueue is a work queue of an existing installation, which this engine does
// not dispatch.
type WorkQueue struct {
	Ref     string `json:"ref"`
	Enabled bool   `json:"enabled"`
	// Waiting counts the items that are queued or to be tried again, Leased those
	// that an execution has.
	Waiting int64 `json:"waiting"`
	Leased  int64 `json:"leased"`
	// Oldest is when the oldest of these items was made; nil without items.
	Oldest *time.Time `json:"oldest"`
}

// WorkQueuesError refuses to adopt a schema whose work queues would wait from then
// on. Nothing was changed. Options.WithoutWorkQueues adopts it nevertheless.
type WorkQueuesError struct {
	Schema string
	Queues []WorkQueue
}

// Error lists every queue on a line of its own.
func (e *WorkQueuesError) Error() string {
	lines := make([]string, 0, len(e.Queues))
	for _, q := range e.Queues {
		lines = append(lines, q.String())
	}
	return fmt.Sprintf("schema %s has work queues that this engine does not dispatch:\n  %s",
		e.Schema, strings.Join(lines, "\n  "))
}

// String says in a line what waits in the queue.
func (q WorkQueue) String() string {
	line := fmt.Sprintf("work queue %s: %d items wait, %d are leased", q.Ref, q.Waiting, q.Leased)
	if !q.Enabled {
		line += ", it is disabled"
	}
	if q.Oldest != nil {
		line += ", the oldest since " + q.Oldest.Format(time.RFC3339)
	}
	return line
}

// workQueues lists the queues that an engine which dispatches them works on: the
// enabled ones, and those with leased items. An installation may lack the tables.
func (s *session) workQueues(ctx context.Context) ([]WorkQueue, error) {
	there, err := s.hasTable(ctx, "work_queue_item")
	if err != nil || !there {
		return nil, err
	}
	rows, err := s.conn.QueryContext(ctx, `SELECT q.ref, q.enabled, count(i.id) FILTER (WHERE i.status <> 'leased'),
		    count(i.id) FILTER (WHERE i.status = 'leased'), min(i.created)
		FROM work_queue q LEFT JOIN work_queue_item i ON i.queue = q.id AND i.status IN ('queued', 'retry', 'leased')
		GROUP BY q.id HAVING q.enabled OR count(i.id) FILTER (WHERE i.status = 'leased') > 0
		ORDER BY q.ref`)
	if err != nil {
		return nil, fmt.Errorf("count the items of work queues: %w", err)
	}
	defer func() { _ = rows.Close() }() // the error of reading is in rows.Err
	var queues []WorkQueue
	for rows.Next() {
		var q WorkQueue
		if err := rows.Scan(&q.Ref, &q.Enabled, &q.Waiting, &q.Leased, &q.Oldest); err != nil {
			return nil, fmt.Errorf("count the items of work queues: %w", err)
		}
		if q.Oldest != nil {
			*q.Oldest = q.Oldest.UTC()
		}
		queues = append(queues, q)
	}
	return queues, rows.Err()
}
