package migrations

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// WorkQueue is a work queue of an existing installation. This engine does not dispatch it.
type WorkQueue struct {
	Ref     string `json:"ref"`
	Enabled bool   `json:"enabled"`
	// Waiting counts the queued items and those to retry, Leased the items of executions.
	Waiting int64 `json:"waiting"`
	Leased  int64 `json:"leased"`
	// Oldest is the creation of the oldest of these items; nil without items.
	Oldest *time.Time `json:"oldest"`
}

// WorkQueuesError refuses to adopt a schema with work queues. Nothing was changed. Options.WithoutWorkQueues
// adopts it.
type WorkQueuesError struct {
	Schema string
	Queues []WorkQueue
}

// Error lists the queues, a line each.
func (e *WorkQueuesError) Error() string {
	lines := make([]string, 0, len(e.Queues))
	for _, q := range e.Queues {
		lines = append(lines, q.String())
	}
	return fmt.Sprintf("schema %s has work queues that this engine does not dispatch:\n  %s",
		e.Schema, strings.Join(lines, "\n  "))
}

// String describes the queue in one line.
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

// workQueues returns the enabled work queues and those with leased items. An installation may lack the tables.
func (s *session) workQueues(ctx context.Context) ([]WorkQueue, error) {
	exists, err := s.hasTable(ctx, "work_queue_item")
	if err != nil || !exists {
		return nil, err
	}
	queues, err := scanRows(ctx, s, func(q *WorkQueue) []any {
		return []any{&q.Ref, &q.Enabled, &q.Waiting, &q.Leased, &q.Oldest}
	}, `SELECT q.ref, q.enabled, count(i.id) FILTER (WHERE i.status <> 'leased'),
		    count(i.id) FILTER (WHERE i.status = 'leased'), min(i.created)
		FROM work_queue q LEFT JOIN work_queue_item i ON i.queue = q.id AND i.status IN ('queued', 'retry', 'leased')
		GROUP BY q.id HAVING q.enabled OR count(i.id) FILTER (WHERE i.status = 'leased') > 0
		ORDER BY q.ref`)
	if err != nil {
		return nil, fmt.Errorf("count the items of work queues: %w", err)
	}
	for _, q := range queues {
		if q.Oldest != nil {
			*q.Oldest = q.Oldest.UTC()
		}
	}
	return queues, nil
}
