package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// tally counts what a run has come to.
type tally struct {
	done, changed, failed int
	lines                 []act.Line
	audits                []int64
	left                  []int64
	stopped               string
}

// runMany carries out one step after the other. When the context ends it stops
// after the step under way, and after failures in a row at once; what was not
// reached is left.
func (o *Operator) runMany(ctx context.Context, steps []step, reason string) *act.Receipt {
	count, row := &tally{}, 0
	pace := o.cfg.Pace
	if pace == 0 {
		pace = defaultPace
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i, s := range steps {
		if ctx.Err() != nil {
			count.stop("stopped by hand", steps[i:])
			break
		}
		if o.take(ctx, s, reason, count) {
			row = 0
		} else if row++; row == maxFailures {
			count.stop(fmt.Sprintf("stopped after %d failures in a row", row), steps[i+1:])
			break
		}
		triage.Progress(ctx, int64(i+1), int64(len(steps)))
		if i+1 < len(steps) {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	return count.receipt(len(steps))
}

// take carries out one step, whose end is not waited for longer than a while. It
// reports false when the step failed; one that finds its row changed has not.
func (o *Operator) take(ctx context.Context, s step, reason string, count *tally) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	r, err := s.run(triage.WithProgress(ctx, func(int64, int64) {}), reason) // the steps are counted, not what is in them
	switch {
	case err == nil && r.Unchanged:
		count.changed++
		count.tell(act.Note, s.target.Name+": it was so already")
	case err == nil:
		count.done++
		count.audits = append(count.audits, r.Audits...)
	case movedOn(err):
		count.changed++
		count.tell(act.Note, s.target.Name+": "+o.plain(err, true).Error())
	default:
		count.failed++
		count.tell(act.Danger, s.target.Name+": "+o.plain(err, true).Error())
		return false
	}
	return true
}

// movedOn reports that a row is no longer what it was when the plan was made.
func movedOn(err error) bool {
	if _, ok := errors.AsType[*triage.AlreadyRetriedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*triage.WorkerRefusedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*triage.AnswerRefusedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*triage.TargetError](err)
	return ok || errors.Is(err, triage.ErrNotEnded) || errors.Is(err, triage.ErrNoExecution) || errors.Is(err, triage.ErrNoWorker)
}

func (c *tally) tell(tone act.Tone, text string) {
	if len(c.lines) < maxNamed {
		c.lines = append(c.lines, act.Line{Tone: tone, Text: text})
	}
}

func (c *tally) stop(why string, rest []step) {
	c.stopped = why
	for _, s := range rest {
		c.left = append(c.left, s.target.ID)
	}
}

func (c *tally) receipt(planned int) *act.Receipt {
	r := &act.Receipt{
		Text:  outcome(c.done, planned, "done", other{c.changed, "changed meanwhile"}, other{c.failed, "failed"}),
		Lines: c.lines, Audits: c.audits, Partly: c.done < planned, Left: c.left,
	}
	if c.stopped != "" {
		r.Lines = append(r.Lines, line(act.Warn, "%s; %d were not reached and stay marked.", sentenceCase(c.stopped), len(c.left)))
		r.Next = "the same again goes on with those"
	}
	return r
}
