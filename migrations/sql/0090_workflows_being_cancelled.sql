-- Opens the workflows that another engine was cancelling: it ends their row at once, and their execution with the last
-- child.

-- +goose Up
UPDATE workflow_execution w SET open = true
FROM execution e
WHERE e.id = w.execution AND e.status = 'canceling' AND NOT w.open AND w.state IS NULL AND w.status = 'cancelled';
UPDATE workflow_task_dispatch d SET settled = false
FROM workflow_execution w
WHERE w.id = d.workflow_execution AND w.open AND w.state IS NULL AND w.status = 'cancelled' AND d.settled;

-- +goose Down
