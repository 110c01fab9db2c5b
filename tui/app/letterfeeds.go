package app

import (
	"context"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// letterReader binds the read of a feed about dead letters to what their screens ask
// for now. What they do not ask for is empty, and nothing is read for it.
func (m *Model) letterReader(feed screen.Feed) func(ctx context.Context) (any, error) {
	r := m.source
	switch feed {
	case screen.FeedLetter:
		id := m.letter.ID()
		return func(ctx context.Context) (any, error) { return settle(r.Letter(ctx, id)) }
	case screen.FeedLedger:
		filter, cursor, asked := m.letters.Ask()
		return func(ctx context.Context) (any, error) {
			if !asked {
				return &monitor.LedgerPage{}, nil
			}
			return settle(r.LedgerList(ctx, filter, cursor))
		}
	case screen.FeedRoute:
		exchange, key, asked := m.letter.Target()
		return func(ctx context.Context) (any, error) {
			if !asked {
				return &monitor.Route{}, nil
			}
			return settle(r.Route(ctx, exchange, key))
		}
	default:
		return func(ctx context.Context) (any, error) { return settle(r.DeadLetters(ctx)) }
	}
}
