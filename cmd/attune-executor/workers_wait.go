package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/attune-go/attune/core/triage"
)

// drainLook is the pause between two looks at a draining worker, and drainTell
// the longest silence of its progress.
const (
	drainLook = 500 * time.Millisecond
	drainTell = 15 * time.Second
)

// awaitDrained waits until nothing is at a worker, and says how it goes.
func (t *triageClient) awaitDrained(receipt *triage.WorkerReceipt, timeout time.Duration) error {
	ctx, stop := signal.NotifyContext(t.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	begin := time.Now()
	progress := drainProgress{app: t.app, begin: begin}
	for {
		now, err := t.WorkerNow(ctx, triage.WorkerOrder{Worker: strconv.FormatInt(receipt.After.ID, 10), ByID: true})
		switch {
		case ctx.Err() != nil:
			return drainGivenUp(ctx, receipt, timeout)
		case errors.Is(err, triage.ErrNoWorker):
			return failedErrorf("worker %s was forgotten by somebody while it drained", receipt.After.Name)
		case err != nil:
			return err
		}
		receipt.After = *now
		if now.Empty() {
			return t.show(extended{receipt, "waited_seconds", time.Since(begin).Seconds()}, func(w *page) {
				w.rowf("worker %s has drained: nothing is there any more, after %s", now.Name, short(time.Since(begin)))
			})
		}
		if !now.Cordoned {
			return failedErrorf("worker %s no longer drains: somebody has uncordoned it", now.Name)
		}
		progress.tell(now)
		select {
		case <-ctx.Done():
			return drainGivenUp(ctx, receipt, timeout)
		case <-time.After(drainLook):
		}
	}
}

func drainGivenUp(ctx context.Context, receipt *triage.WorkerReceipt, timeout time.Duration) error {
	why := "interrupted"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "after " + short(timeout)
	}
	return failedErrorf("%s, %d run at worker %s and %d have not begun: it drains on, the same command waits on",
		why, receipt.After.Running, receipt.After.Name, receipt.After.Unstarted)
}

// drainProgress tells how a drain goes, when something changes or now and then.
type drainProgress struct {
	app   *app
	begin time.Time
	said  string
	at    time.Time
}

func (p *drainProgress) tell(now *triage.WorkerNow) {
	text := fmt.Sprintf("worker %s: %d running, %d not begun", now.Name, now.Running, now.Unstarted)
	switch {
	case now.Stale:
		text += ", its heartbeat is stale: the engine decides about them"
	case now.Running == 0 && now.Fences:
		text += ", which wait for another worker that can take them"
	}
	if text == p.said && time.Since(p.at) < drainTell {
		return
	}
	p.said, p.at = text, time.Now()
	p.app.notef("%s (%s)", text, short(time.Since(p.begin)))
}
