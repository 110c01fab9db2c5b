package handback

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// How long a worker may take to start its executions, and the pause between two checks.
const (
	startsTimeout = 5 * time.Second
	startsEvery   = 200 * time.Millisecond
)

// UnstartedError refuses while workers hold executions that they have not started.
type UnstartedError struct{ Workers []store.BatchQueuesRow }

// Error names the workers to stop.
func (e *UnstartedError) Error() string {
	names := make([]string, len(e.Workers))
	for i, w := range e.Workers {
		names[i] = fmt.Sprintf("%s holds %d", w.Name, w.Unstarted)
	}
	return fmt.Sprintf(
		"workers of attune-executor hold executions that they have not started (%s): stop them with SIGTERM",
		strings.Join(names, ", "))
}

// awaitStarts waits until no live worker holds unstarted executions.
func awaitStarts(ctx context.Context, deps Deps) error {
	for begun := time.Now(); ; {
		workers, err := deps.Store.BatchQueues(ctx)
		if err != nil {
			return fmt.Errorf("read the workers: nothing was changed: %w", err)
		}
		var holding []store.BatchQueuesRow
		for _, w := range workers {
			if !w.Batch || w.Unstarted == 0 {
				continue
			}
			state, err := deps.Broker.QueueState(ctx, message.WorkerExecutionsQueue(w.ID))
			if err != nil {
				return fmt.Errorf("read the queue of worker %s: nothing was changed: %w", w.Name, err)
			}
			if state.Consumers > 0 {
				holding = append(holding, w)
			}
		}
		if len(holding) == 0 {
			return nil
		}
		if time.Since(begun) > startsTimeout {
			return &UnstartedError{holding}
		}
		if !supervise.Sleep(ctx, startsEvery) {
			return fmt.Errorf("wait for the workers: nothing was changed: %w", context.Cause(ctx))
		}
	}
}

// splitBatches replaces batch messages, which the other executor and its workers cannot read, and deletes their
// queue.
func splitBatches(ctx context.Context, deps Deps, result *Result) error {
	workers, err := deps.Store.BatchQueues(ctx)
	if err != nil {
		return fmt.Errorf("read the workers: %w", err)
	}
	queues := []string{message.QueueExecutionBatches}
	for _, w := range workers {
		queues = append(queues, message.WorkerExecutionsQueue(w.ID))
	}
	for _, queue := range queues {
		n, err := deps.Broker.SplitBatches(ctx, queue)
		result.Split += n
		if err != nil {
			return err
		}
	}
	// Running workers send single messages once the queue is deleted. The ends of executions in a
	// batch that is sent at this moment are in the database.
	deleted, reason, err := deps.Broker.DeleteQueueIfIdle(ctx, message.QueueExecutionBatches)
	if err == nil && !deleted {
		err = fmt.Errorf("%w: %s", errStillUsed, reason)
	}
	return err
}

// errStillUsed reports that a queue could not be deleted.
var errStillUsed = errors.New("queue " + message.QueueExecutionBatches + " is still used")
