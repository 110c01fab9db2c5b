package monitor

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
)

// Answers asks one of the sources whether it is there, for as little as that costs. A
// source that is not configured is an error, as it is where it is read.
func (m *Monitor) Answers(ctx context.Context, source string) error {
	if source == SourceDatabase {
		var r Reading
		return m.Read(ctx, "whether the database answers", &r, func(context.Context, *store.Tx, Shape) error { return nil })
	}
	if m.deps.Broker == nil {
		return errNoSource
	}
	if _, err := m.deps.Broker.ReadDepth(ctx, DeadLetterQueue); err != nil && !errors.Is(err, broker.ErrNotFound) {
		return fmt.Errorf("ask the broker: %w", err)
	}
	return nil
}
