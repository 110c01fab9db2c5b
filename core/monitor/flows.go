package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Flows is what of workflows and questions somebody has to look at.
type Flows struct {
	// Inquiries counts the questions that wait for an answer, Late those of them that
	// have used up most of their time, Oldest is how long the oldest has waited.
	Inquiries Count         `json:"inquiries"`
	Late      Count         `json:"inquiries_late"`
	Oldest    time.Duration `json:"inquiries_oldest_ns"`
	// Paused counts the workflows that are paused, Failed those that ended badly of
	// what was requested within Window.
	Paused Count         `json:"workflows_paused"`
	Failed Count         `json:"workflows_failed"`
	Window time.Duration `json:"window_ns"`
}

// flowBound is where counting paused and failed workflows and questions stops.
const flowBound = 500

// readFlows counts what waits for somebody; nil where the schema does not record it.
func readFlows(ctx context.Context, tx *store.Tx, s shape, floor int64) (*Flows, error) {
	err := recordsWorkflows(ctx, tx, s)
	if err == nil {
		err = inquiriesThere(ctx, tx)
	}
	if errors.Is(err, ErrUnmigrated) {
		return nil, nil //nolint:nilnil // there is nothing to count and nothing wrong
	}
	if err != nil {
		return nil, err
	}
	asked, err := tx.CountOpenInquiries(ctx, flowBound)
	if err != nil {
		return nil, fmt.Errorf("count open inquiries: %w", err)
	}
	trouble, err := tx.ViewWorkflowTrouble(ctx, flowBound, floor)
	if err != nil {
		return nil, fmt.Errorf("count paused and failed workflows: %w", err)
	}
	count := func(n int64) Count { return Count{Value: n, AtLeast: n >= flowBound} }
	return &Flows{
		Inquiries: count(asked.Open), Late: count(asked.Late), Oldest: time.Duration(asked.OldestSeconds * float64(time.Second)),
		Paused: count(trouble.Paused), Failed: count(trouble.Failed), Window: RecentWindow,
	}, nil
}

// findings says what of it needs attention.
func (f *Flows) findings(at time.Time) []Finding {
	if f == nil {
		return nil
	}
	var found []Finding
	if f.Failed.Value > 0 {
		found = append(found, Finding{
			Level: LevelWarning, Text: f.Failed.words("workflow has failed", "workflows have failed"), Target: "workflows",
			Hint: "of what was requested in the last " + span(f.Window), Filter: "status:failed,timeout,abandoned",
		})
	}
	if f.Inquiries.Value > 0 {
		one := Finding{
			Level: LevelInfo, Text: f.Inquiries.words("question waits for a person", "questions wait for people"), Target: "inquiries",
			Hint: "the oldest for " + span(f.Oldest), Filter: "status:pending",
		}
		since := at.Add(-f.Oldest)
		one.Since = &since
		if f.Late.Value > 0 {
			one.Level = LevelWarning
			one.Hint += "; " + f.Late.words("has", "have") + " used up most of the time"
		}
		found = append(found, one)
	}
	if f.Paused.Value > 0 {
		found = append(found, Finding{
			Level: LevelInfo, Text: f.Paused.words("workflow is paused", "workflows are paused"), Target: "workflows",
			Hint: "nothing more is started in them until they are resumed", Filter: "status:" + WorkflowPaused,
		})
	}
	return found
}

// words writes the count before a word.
func (c Count) words(one, many string) string {
	text := Plural(c.Value, one, many)
	if c.AtLeast {
		return "at least " + text
	}
	return text
}
