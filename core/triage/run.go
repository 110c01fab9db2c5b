package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// LockedError reports that another operator acts on the dead letters of a queue, and names them.
type LockedError = store.LockedError

// Run is a plan for many rows: steps that run one after the other.
type Run struct {
	Steps []Step
	// Lock names what no other operator may act on meanwhile; empty for none.
	Lock string
	// Unpaced steps follow each other at once: they hold work back, which later rows would take meanwhile.
	Unpaced bool
}

// Step acts on one row, or on a page of rows in one transaction.
type Step struct {
	Rows []int64
	// Name is the row for people; empty where the errors name it.
	Name string
	Do   func(ctx context.Context, reason string) (Outcome, error)
}

// Outcome is the result of a step without an error: how many of its rows it changed. The others needed no change.
type Outcome struct {
	Done   int
	Audits []int64
}

// RunReceipt is the result of a run. Planned is the sum of Done, Changed, Failed and the rows in Left.
type RunReceipt struct {
	Planned int `json:"planned"`
	Done    int `json:"done"`
	// Changed rows are no longer as they were planned, or no longer exist.
	Changed int `json:"changed"`
	// Failed rows could not be changed, or it is unknown whether they were.
	Failed int     `json:"failed"`
	Left   []int64 `json:"left,omitempty"`
	// Notes are about the first rows that were not done.
	Notes []Note `json:"-"`
	// Stopped is the reason of an early end; empty without one.
	Stopped string  `json:"stopped,omitempty"`
	Audits  []int64 `json:"audit_ids"`
}

// Note is the reason why a row was not done.
type Note struct {
	Name   string
	Err    error
	Failed bool
}

const (
	// MaxFailures is how many steps in a row may fail before a run ends.
	MaxFailures = 3
	// DefaultPace is the time between two steps: 20 a second.
	DefaultPace = 50 * time.Millisecond
	// stepTimeout bounds a step.
	stepTimeout = 30 * time.Second
	// maxNotes bounds the notes of a receipt.
	maxNotes = 8
	// stoppedByHand is the reason of a run that its operator stopped.
	stoppedByHand = "stopped by hand"
)

// errUnchanged is the note of a row that needed no change.
var errUnchanged = errors.New("it was so already")

// Run carries out the steps of a run at the pace of Config.Pace. It ends after MaxFailures failures in a row, when
// its lock is lost and, after the running step, when the context ends: the other rows are left, and the same run
// again continues with them. The last failed rows are left too if the database is away. It returns an error only if
// it could not begin, such as a *LockedError.
func (t *Triage) Run(ctx context.Context, run Run, reason string) (*RunReceipt, error) {
	receipt := &RunReceipt{Audits: []int64{}}
	for _, step := range run.Steps {
		receipt.Planned += len(step.Rows)
	}
	work := loop{pause: t.cfg.Pace}
	if run.Unpaced {
		work.pause = 0
	}
	if run.Lock != "" {
		var err error
		if work.lock, err = t.store.LockSession(ctx, run.Lock, t.holder()); err != nil {
			return nil, err
		}
		defer work.lock.Release(ctx)
	}
	left, failures, away := run.Steps, 0, 0
	err := work.run(ctx, func(ctx context.Context) (more bool, err error) {
		if len(left) == 0 {
			return false, nil
		}
		err = receipt.step(ctx, left[0], reason)
		failures, away = failures+1, away+1
		switch {
		case err == nil:
			failures, away = 0, 0
		case !store.IsAway(err):
			away = 0
		}
		left = left[1:]
		progress(ctx, receipt.Done+receipt.Changed+receipt.Failed, receipt.Planned)
		return len(left) > 0 && failures < MaxFailures, nil
	})
	switch {
	case len(left) == 0:
		return receipt, nil
	case ctx.Err() != nil:
		receipt.Stopped = stoppedByHand
	case err != nil:
		receipt.Stopped = "stopped: " + err.Error()
	default:
		receipt.Stopped = fmt.Sprintf("stopped after %d failures in a row", failures)
	}
	last := run.Steps[len(run.Steps)-len(left)-away : len(run.Steps)-len(left)]
	for _, step := range last {
		receipt.Failed -= len(step.Rows)
	}
	for _, step := range slices.Concat(last, left) {
		receipt.Left = append(receipt.Left, step.Rows...)
	}
	return receipt, nil
}

// loop is the loop of every action on many rows.
type loop struct {
	lock  *store.SessionLock // checked before each step; nil without one
	pause time.Duration      // between the beginnings of two steps
}

// run calls step until it reports that there are no more rows, or fails. Between two steps it ends with the error of
// the context or of a lost lock.
func (l loop) run(ctx context.Context, step func(ctx context.Context) (more bool, err error)) error {
	for more := true; more; {
		began := time.Now()
		err := ctx.Err()
		if err == nil && l.lock != nil {
			// A check that the context cuts would lose the connection, and the lock with it.
			uncut, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
			err = l.lock.Check(uncut)
			cancel()
		}
		if err == nil {
			more, err = step(ctx)
		}
		if err != nil {
			return err
		}
		if more {
			supervise.Sleep(ctx, time.Until(began.Add(l.pause)))
		}
	}
	return nil
}

// step carries out one step and counts the results of its rows. The end of ctx does not cut the step. It returns the
// error of a failed step.
func (r *RunReceipt) step(ctx context.Context, one Step, reason string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	// A run counts rows, so the progress within a step is dropped.
	outcome, err := one.Do(WithProgress(ctx, func(int64, int64) {}), reason)
	note := Note{Name: one.Name, Err: err}
	switch {
	case err == nil:
		r.Done, r.Audits = r.Done+outcome.Done, append(r.Audits, outcome.Audits...)
		changed := len(one.Rows) - outcome.Done
		if changed <= 0 {
			return nil
		}
		r.Changed += changed
		note.Err = errUnchanged
	case Refused(err):
		r.Changed += len(one.Rows)
	default:
		r.Failed += len(one.Rows)
		note.Failed = true
	}
	if len(r.Notes) < maxNotes {
		r.Notes = append(r.Notes, note)
	}
	if note.Failed {
		return err
	}
	return nil
}

// holder is the name of a lock's holder, shown to other operators.
func (t *Triage) holder() string { return t.cfg.Source + " " + t.cfg.Actor }

// refusals are the errors that refuse an action because of the present state of its target.
var refusals = []error{
	ErrNoDeadLetter, ErrDecided, ErrNoMessage, ErrUseless, ErrNoExecution, ErrNotEnded, ErrNoWorker, ErrNoWorkflow,
	ErrNoInquiry, ErrNoMove,
}

// Refused reports whether an error refuses an action because of the present state of its target: it has changed, or
// does not exist.
func Refused(err error) bool {
	return refusal(err) != nil || slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(err, kind) })
}

// refusal finds the typed refusal in an error; nil if there is none.
func refusal(err error) error {
	for _, find := range []func(error) error{
		as[*TargetError], as[*AlreadyRetriedError], as[*WorkerRefusedError], as[*AnswerRefusedError],
		as[*WorkflowEndedError],
	} {
		if typed := find(err); typed != nil {
			return typed
		}
	}
	return nil
}

func as[E error](err error) error {
	if typed, ok := errors.AsType[E](err); ok {
		return typed
	}
	return nil
}
