package supervise

import (
	"context"
	"time"
)

// Sleep waits and reports whether the whole pause has passed; it is false when
// the context ended first.
func Sleep(ctx context.Context, pause time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
