package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/store"
)

// LockedError says that another operator acts on the dead letters of a queue, and who.
type LockedError = store.LockedError

// Run is a plan for many rows: steps that are carried out one after the other.
type Run struct {
	Steps []Step
	// Lock names what no other operator may act on meanwhile; empty for nothing.
	Lock string
}

// Step acts on one row, or on a page of rows that one transaction decides.
type Step struct {
	Rows []int64
	// Name is the row for people; empty where the errors name it.
	Name string
	Do   func(ctx context.Context, reason string) (Outcome, error)
}

// Outcome is what a step without an error did: it changed so many of its rows; the others were so already.
type Outcome struct {
	Done   int
	Audits []int64
}

// RunReceipt is what a run has done. Planned is Done, Changed, Failed and those in Left together.
type RunReceipt struct {
	Planned int `json:"planned"`
	Done    int `json:"done"`
	// Changed are no longer what they were when the plan was made, or are gone.
	Changed int `json:"changed"`
	// Failed could not be done, or it is unknown whether they were.
	Failed int     `json:"failed"`
	Left   []int64 `json:"left,omitempty"`
	// Notes are about the first of the rows that were not done.
	Notes []Note `json:"-"`
	// Stopped says why it ended early; empty if it did not.
	Stopped string  `json:"stopped,omitempty"`
	Audits  []int64 `json:"audit_ids"`
}

// Note says of a row why it was not done.
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
	// stepTimeout ends a step that hangs.
	stepTimeout = 30 * time.Second
	// maxNotes bounds the rows that a receipt says more of.
	maxNotes = 8
)

// errUnchanged is the note of a row that nothing was to be done to.
var errUnchanged = errors.New("it was so already")

// Run carries out the steps of a run at a pace. It ends after MaxFailures failures in a row, when its lock is
// lost and, after the step under way, when the context ends: what was not reached is left, and the same again
// goes on. It returns an error only if it could not begin, such as a *LockedError.
func (t *Triage) Run(ctx context.Context, run Run, reason string) (*RunReceipt, error) {
	check := func() error { return nil }
	if run.Lock != "" {
		lock, err := t.store.LockSession(ctx, run.Lock, t.holder())
		if err != nil {
			return nil, err
		}
		defer lock.Release(ctx)
		check = func() error { return lock.Check(ctx) }
	}
	receipt := &RunReceipt{Audits: []int64{}}
	for _, step := range run.Steps {
		receipt.Planned += len(step.Rows)
	}
	pace := time.NewTicker(t.cfg.Pace)
	defer pace.Stop()
	failures := 0
	for i, step := range run.Steps {
		if i > 0 {
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
		lost := check()
		switch {
		case ctx.Err() != nil:
			receipt.Stopped = "stopped by hand"
		case lost != nil:
			receipt.Stopped = "stopped: " + lost.Error()
		case failures == MaxFailures:
			receipt.Stopped = fmt.Sprintf("stopped after %d failures in a row", failures)
		}
		if receipt.Stopped != "" {
			for _, rest := range run.Steps[i:] {
				receipt.Left = append(receipt.Left, rest.Rows...)
			}
			break
		}
		if failures++; receipt.take(ctx, step, reason) {
			failures = 0
		}
		progress(ctx, receipt.Done+receipt.Changed+receipt.Failed, receipt.Planned)
	}
	return receipt, nil
}

// take carries out one step, which a stop does not cut, and counts what became of its rows. It reports false
// when the step failed.
func (r *RunReceipt) take(ctx context.Context, step Step, reason string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	// The rows are counted, not what a step does for each.
	outcome, err := step.Do(WithProgress(ctx, func(int64, int64) {}), reason)
	switch {
	case err == nil:
		r.Done, r.Audits = r.Done+outcome.Done, append(r.Audits, outcome.Audits...)
		if changed := len(step.Rows) - outcome.Done; changed > 0 {
			r.Changed += changed
			r.note(Note{Name: step.Name, Err: errUnchanged})
		}
	case Refused(err):
		r.Changed += len(step.Rows)
		r.note(Note{Name: step.Name, Err: err})
	default:
		r.Failed += len(step.Rows)
		r.note(Note{Name: step.Name, Err: err, Failed: true})
		return false
	}
	return true
}

func (r *RunReceipt) note(n Note) {
	if len(r.Notes) < maxNotes {
		r.Notes = append(r.Notes, n)
	}
}

// holder is who holds a lock, for others.
func (t *Triage) holder() string { return t.cfg.Source + " " + t.cfg.Actor }

// refusals are the errors that refuse an act for what its target is by now.
var refusals = []error{
	ErrNoLetter, ErrDecided, ErrNoMessage, ErrUseless, ErrNoExecution, ErrNotEnded, ErrNoWorker, ErrNoWorkflow,
	ErrNoInquiry,
}

// Refused reports whether an error refuses an act for what its target is by now: it was changed meanwhile, or
// is not there.
func Refused(err error) bool {
	return refusal(err) != nil || slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(err, kind) })
}

// refusal finds the refusal in an error that says more than its kind; nil if there is none.
func refusal(err error) error {
	if e, ok := errors.AsType[*TargetError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*AlreadyRetriedError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*WorkerRefusedError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*AnswerRefusedError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*WorkflowEndedError](err); ok {
		return e
	}
	return nil
}
