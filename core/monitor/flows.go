package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/phrase"
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

// ReadFlows counts what waits for somebody; nil where the schema does not record it.
func ReadFlows(ctx context.Context, tx *store.Tx, s Shape, floor int64) (*Flows, error) {
	err := RecordsWorkflows(ctx, tx, s)
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

// Words writes the count before a word.
func (c Count) Words(one, many string) string {
	text := phrase.Plural(c.Value, one, many)
	if c.AtLeast {
		return "at least " + text
	}
	return text
}
