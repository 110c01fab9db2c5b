package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/retrypolicy"
)

// retryPolicy is the policy by which a running engine with this configuration
// repeats.
func retryPolicy(cfg *config.Config) retrypolicy.Config {
	r := cfg.Executor.Retry
	return retrypolicy.Config{
		Enabled: r.Enabled, BaseDelay: r.BaseDelay, Multiplier: r.Multiplier, MaxDelay: r.MaxDelay, Jitter: r.Jitter,
		Unstarted: r.MaxUnstarted, ActionRetries: retrypolicy.ActionRetries(r.HonourActionMaxRetries),
	}
}

// unsuccessful reports whether an engine may repeat what ended like this.
func unsuccessful(status attune.Status) bool {
	return status.Terminal() && !status.Succeeded() && status != attune.StatusCancelled
}

// history is what is known of an execution's attempts.
type history struct {
	// Attempts are all attempts of the chain, the first one first.
	Attempts []monitor.Attempt `json:"attempts"`
	// NotRepeated says why an execution that did not succeed is not repeated.
	NotRepeated string `json:"not_repeated,omitempty"`

	expected bool
	self     monitor.Attempt
}

func (c *client) history(ctx context.Context, e *monitor.ExecutionDetail) (history, error) {
	attempts, err := c.monitor().Attempts(ctx, e.ID)
	if err != nil {
		return history{}, err
	}
	h := history{Attempts: attempts}
	for _, attempt := range attempts {
		if attempt.ID == e.ID {
			h.self = attempt
		}
	}
	if h.self.RepeatedBy != nil || !unsuccessful(attune.Status(e.Status)) {
		return h, nil
	}
	next, err := c.monitor().Repetition(ctx, e.ID, retryPolicy(c.cfg))
	if err != nil {
		return history{}, err
	}
	h.expected, h.NotRepeated = next.Expected, next.Why
	return h, nil
}

// lines are the facts of one execution's place among its attempts.
func (h history) lines(now time.Time) [][2]string {
	var lines [][2]string
	add := func(name, value string) { lines = append(lines, [2]string{name, value}) }
	if h.self.Number > 1 {
		add("attempt", strconv.FormatInt(h.self.Number, 10))
	}
	if h.self.Repeats != nil {
		text := fmt.Sprintf("%d (%s)", *h.self.Repeats, dash(h.self.Reason))
		if h.self.RequestedBy != "" {
			text += " by " + h.self.RequestedBy
		}
		add("repeats", text)
	}
	if h.self.Due != nil {
		add("due", dueText(*h.self.Due, now))
	}
	switch {
	case h.self.RepeatedBy != nil:
		add("repeated by", strconv.FormatInt(*h.self.RepeatedBy, 10))
	case h.expected:
		add("repeated by", "none yet: an engine repeats it once it has heard of its end")
	case h.NotRepeated != "":
		add("repeated by", "none: "+h.NotRepeated)
	}
	return lines
}

func dueText(due, now time.Time) string {
	if !due.After(now) {
		return "now"
	}
	return fmt.Sprintf("%s, in %s", due.Format(time.RFC3339), short(due.Sub(now)))
}

// table lists the attempts if there are several.
func (h history) table(w *page, now time.Time) {
	if len(h.Attempts) < 2 {
		return
	}
	w.text("\nattempts")
	table(w, "", h.Attempts,
		col("  #", func(a *monitor.Attempt) any { return fmt.Sprintf("  %d", a.Number) }),
		col("ID", func(a *monitor.Attempt) any { return a.ID }),
		col("STATUS", func(a *monitor.Attempt) any {
			if a.Due != nil {
				return "due in " + short(a.Due.Sub(now))
			}
			return a.Status
		}),
		col("WHY", func(a *monitor.Attempt) any { return dash(a.Reason) }),
		col("WORKER", func(a *monitor.Attempt) any { return cmp.Or(a.WorkerName, idText(a.WorkerID)) }),
		col("REQUESTED", func(a *monitor.Attempt) any { return short(now.Sub(a.Created)) + " ago" }),
		col("RAN", func(a *monitor.Attempt) any { return spanText(a.StartedAt, a.FinishedAt) }),
		col("ERROR", func(a *monitor.Attempt) any { return dash(a.Error) }))
}
