package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

// repeatPatience is how long `run --wait` waits for an engine to repeat what has
// ended, if by this configuration it should.
const repeatPatience = 10 * time.Second

// followEnd waits for the end of an execution and of whatever repeats it, and
// returns the last one with the number of attempts. With an error, the
// execution that was being waited for is returned.
func (a *app) followEnd(ctx context.Context, c *client, submitter *submit.Submitter, id int64) (end store.Execution, attempts int, err error) {
	for attempts = 1; ; attempts++ {
		end, err = submitter.Wait(ctx, id)
		if err != nil {
			return store.Execution{ID: id}, attempts, err
		}
		if !unsuccessful(end.Status) {
			return end, attempts, nil
		}
		next, err := a.awaitRepetition(ctx, c, id)
		if err != nil || next == nil {
			return end, attempts, err
		}
		a.notef("attempt %d %s%s, repeated as execution %d%s", attempts, end.Status, because(end.Result), next.ID, pauseText(*next))
		id = next.ID
	}
}

// awaitRepetition returns the attempt that repeats an execution, nil if there
// will be none.
func (a *app) awaitRepetition(ctx context.Context, c *client, id int64) (*monitor.Attempt, error) {
	waiting, cancel := context.WithTimeout(ctx, repeatPatience)
	defer cancel()
	mon, policy := c.monitor(), retryPolicy(c.cfg)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		answer, err := mon.Repetition(waiting, id, policy)
		switch {
		case err == nil && answer.By != nil:
			return attemptOf(waiting, mon, *answer.By), nil
		case err == nil && !answer.Expected:
			return nil, nil //nolint:nilnil // no repetition is an answer
		case errors.Is(err, monitor.ErrNotFound):
			return nil, fmt.Errorf("execution %d was deleted while its repetition was waited for", id)
		case err != nil && waiting.Err() == nil && store.ClassOf(err) != store.ClassUnreachable:
			return nil, err
		}
		if !supervise.Sleep(waiting, pause) {
			if ctx.Err() == nil {
				a.notef("execution %d may be repeated, but no engine has done so within %s", id, short(repeatPatience))
			}
			return nil, nil //nolint:nilnil // no repetition is an answer
		}
	}
}

// attemptOf reads one attempt; if that fails, all that is known of it is its id.
func attemptOf(ctx context.Context, mon *alerting.Reader, id int64) *monitor.Attempt {
	attempts, _ := mon.Attempts(ctx, id) // the id is enough to go on
	for i := range attempts {
		if attempts[i].ID == id {
			return &attempts[i]
		}
	}
	return &monitor.Attempt{ID: id}
}

// pauseText says when an attempt begins that waits for its time.
func pauseText(attempt monitor.Attempt) string {
	if attempt.Due == nil {
		return ""
	}
	return " in " + short(attempt.Due.Sub(attempt.Created))
}
