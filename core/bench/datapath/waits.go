package datapath

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/supervise"
)

// lookPause is how often it is looked which rounds wait for locks.
const lookPause = 5 * time.Millisecond

// waits looks at the rounds until the context ends, and returns which share of their
// time they waited for locks.
func (w *world) waits(ctx context.Context) (share float64, err error) {
	conn, err := w.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only read
	running, waiting := 0, 0
	for supervise.Sleep(ctx, lookPause) {
		var now, of int
		if err := conn.QueryRow(ctx, lockWaitsSQL, applicationRounds).Scan(&of, &now); err != nil {
			if ctx.Err() != nil {
				break
			}
			return 0, fmt.Errorf("look which rounds wait for locks: %w", err)
		}
		running, waiting = running+of, waiting+now
	}
	return float64(waiting) / float64(max(running, 1)), nil
}
