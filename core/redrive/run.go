package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
)

// Receipt is what a run has done. Planned is Done, Changed, Failed, Absent, Unknown
// and Left together.
type Receipt struct {
	Op      string `json:"op"`
	Do      string `json:"do"`
	Planned int    `json:"planned"`
	Done    int    `json:"done"`
	// Changed are those that were not any more what the plan saw, Absent those that
	// the queue no longer had.
	Changed int `json:"changed"`
	Absent  int `json:"absent"`
	Failed  int `json:"failed"`
	// Unknown are those that were in hand when a server stopped answering: each may be
	// done or not.
	Unknown int `json:"unknown"`
	// Left were not come to.
	Left int `json:"left"`
	// Before, After and Expected are depths of the queue; After is -1 if unknown.
	Before   int     `json:"before"`
	After    int     `json:"after"`
	Expected int     `json:"expected"`
	Seconds  float64 `json:"seconds"`
	// Stopped says why the run ended early; empty if it did not.
	Stopped string   `json:"stopped,omitempty"`
	Errors  []string `json:"errors,omitempty"`
	// Undoable says that what was removed is in the spool, Ledger that it is in the
	// ledger.
	Undoable bool `json:"undoable,omitempty"`
	Ledger   bool `json:"ledger,omitempty"`
	// Audit is the row of operator_audit that records it; 0 where there is none.
	Audit int64 `json:"audit,omitempty"`
}

// The patience of a run.
const (
	// prefetch is how many messages come before some are settled.
	prefetch = 20
	// nextPatience is how long a message is awaited that should be there.
	nextPatience = 2 * time.Second
	// maxErrors in a row end a run.
	maxErrors = 3
	// depthPatience is how long the depth is awaited that should be there at the
	// end: what goes back does so without an answer.
	depthPatience = 2 * time.Second
	depthPause    = 50 * time.Millisecond
	// auditPatience bounds writing down what a run has come to.
	auditPatience = 2 * time.Second
)

// stoppedByHand is why a run ended that its operator has stopped.
const stoppedByHand = "stopped by hand"

// Progress is how far a run has come.
type Progress struct {
	Done, Changed, Failed, Absent, Total int64
	// Before is how deep the queue was, and Out whether what is done leaves it.
	Before int64
	Out    bool
	// Target is the queue that it goes to, which had TargetBefore; empty if that is not
	// known.
	Target       string
	TargetBefore int64
}

// Settled is how many of them were come to.
func (p *Progress) Settled() int64 { return p.Done + p.Changed + p.Failed + p.Absent }

// Tell is told after each letter how far a run has come.
type Tell func(Progress)

// runner is one run.
type runner struct {
	desk    *Desk
	plan    *Plan
	errand  *broker.Errand
	taking  *broker.Taking // nil where nothing is taken from the queue
	spool   *spool         // nil where no copies are spooled
	lock    *store.SessionLock
	tell    Tell
	reason  string
	receipt *Receipt
	row     int // errors in a row
	slot    time.Time
}

// errChanged says that a row is not any more what the plan saw.
var errChanged = errors.New("the execution has changed since the plan")

// Run carries out a plan. It always returns a receipt unless it could not begin,
// which is when the lock is held (*store.LockedError) or a server is away.
func (d *Desk) Run(ctx context.Context, p *Plan, reason string, tell Tell) (receipt *Receipt, err error) {
	began := time.Now()
	lock, err := d.Lock(ctx, p.Op)
	if err != nil {
		return nil, err
	}
	defer lock.Release(ctx)
	errand, err := broker.OpenErrand(ctx, d.cfg.Broker)
	if err != nil {
		return nil, err
	}
	defer errand.Close()
	r := &runner{desk: d, plan: p, errand: errand, lock: lock, tell: tell, reason: reason}
	r.receipt = &Receipt{Op: p.Op, Do: p.Do, Planned: p.Work(), After: -1}
	if r.receipt.Before, _, err = errand.Queue(ctx, d.cfg.Queue); err != nil && len(p.Letters) > 0 {
		return nil, err
	}
	if err := r.record(ctx); err != nil {
		return nil, err
	}
	if err := r.openSpool(); err != nil {
		r.receipt.Stopped = err.Error()
		r.amend(ctx)
		return nil, err
	}
	r.finish(ctx, r.carryOut(ctx))
	r.receipt.Seconds = time.Since(began).Seconds()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
	defer cancel()
	r.amend(ending)
	return r.receipt, nil
}

// openSpool makes the file of copies where something is to leave the queue.
func (r *runner) openSpool() (err error) {
	p := r.plan
	if !p.Spool {
		return nil
	}
	seal, err := loadSeal(r.desk.cfg.SpoolKey)
	if err != nil {
		return err
	}
	r.spool, err = openSpool(r.desk.cfg.Spool, Head{
		Op: p.Op, Do: p.Do, By: r.desk.cfg.Actor, Context: r.desk.cfg.Context, Queue: r.desk.cfg.Queue, At: time.Now(), Reason: r.reason,
	}, seal)
	return err
}

func (r *runner) carryOut(ctx context.Context) error {
	switch {
	case r.plan.Do == DoUndo:
		return r.undo(ctx)
	case r.plan.Real:
		return r.purge(ctx)
	case r.plan.Do == DoPurge:
		return r.drain(ctx)
	}
	chosen, err := r.collect(ctx)
	if err != nil {
		return err
	}
	for _, c := range chosen {
		if err := r.next(ctx, true); err != nil {
			return err
		}
		if err := r.settled(r.one(context.WithoutCancel(ctx), c)); err != nil { // which is bounded, and stops after it
			return err
		}
	}
	return nil
}

// purge has the broker remove all that is ready.
func (r *runner) purge(ctx context.Context) error {
	n, err := r.errand.Purge(ctx, r.desk.cfg.Queue)
	if r.receipt.Done = n; errors.Is(err, broker.ErrUnanswered) {
		r.receipt.Unknown = r.receipt.Planned
	}
	return err
}

// next waits for its turn and looks whether the run may go on. An alarm, a lost lock
// and a cancel end it between two letters.
func (r *runner) next(ctx context.Context, paced bool) error {
	if paced {
		pause := time.Until(r.slot)
		timer := time.NewTimer(max(pause, 0))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.slot = time.Now().Add(time.Duration(float64(time.Second) / r.plan.Rate))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.errand.Blocked():
		return broker.ErrBlocked
	case r.errand.Lost(): // what is sent now could not be acknowledged
		return broker.ErrNotConnected
	}
	return r.lock.Check(ctx)
}

// settled counts what came of one letter. The first that a server cannot answer ends
// the run, and so do some errors in a row.
func (r *runner) settled(err error) error {
	defer r.told()
	switch {
	case err == nil:
		r.receipt.Done++
		r.row = 0
		return nil
	case errors.Is(err, errChanged):
		r.receipt.Changed++
		r.row = 0
		return nil
	case unanswered(err):
		r.receipt.Unknown++
		return err
	case errors.Is(err, broker.ErrNotConnected), store.ClassOf(err) == store.ClassUnreachable:
		return err // nothing was done with it
	}
	r.receipt.Failed++
	r.row++
	if len(r.receipt.Errors) < 10 {
		r.receipt.Errors = append(r.receipt.Errors, err.Error())
	}
	if r.row >= maxErrors {
		return fmt.Errorf("%d errors in a row: %w", r.row, err)
	}
	return nil
}

// told says how far the run has come.
func (r *runner) told() {
	if r.tell == nil {
		return
	}
	c := r.receipt
	p := Progress{
		Done: int64(c.Done), Changed: int64(c.Changed), Failed: int64(c.Failed), Absent: int64(c.Absent), Total: int64(c.Planned), Before: int64(c.Before),
		Out: r.plan.Do != DoUndo && (r.plan.Do != DoRequeue || len(r.plan.Letters) > 0),
	}
	if route := r.plan.Route; route != nil && len(route.Queues) == 1 {
		p.Target, p.TargetBefore = route.Queues[0], int64(route.Ahead)
	}
	r.tell(p)
}

// errHalf says that a row was reset and its request was not sent.
var errHalf = errors.New("its execution is requested, and whether the request was sent is unknown; requeue sends it again")

// unanswered reports whether it is unknown what became of a letter.
func unanswered(err error) bool {
	return errors.Is(err, broker.ErrUnanswered) || errors.Is(err, errHalf) || store.ClassOf(err) == store.ClassUnknown
}

// finish returns what is held, and reads how deep the queue is.
func (r *runner) finish(ctx context.Context, err error) {
	receipt := r.receipt
	if err != nil {
		receipt.Stopped = err.Error()
		if errors.Is(err, context.Canceled) {
			receipt.Stopped = stoppedByHand
		}
	}
	receipt.Left = max(0, receipt.Planned-receipt.Done-receipt.Changed-receipt.Failed-receipt.Absent-receipt.Unknown)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), depthPatience+time.Second)
	defer cancel()
	if r.taking != nil && !r.errand.Lost() { // else the broker returns it by itself
		if err := r.taking.End(ending); err != nil {
			receipt.Errors = append(receipt.Errors, err.Error())
		}
	}
	if r.spool != nil {
		if err := r.spool.close(); err != nil {
			receipt.Errors = append(receipt.Errors, err.Error())
		}
	}
	receipt.Ledger = receipt.Done > 0 && r.plan.Ledger
	receipt.Undoable = receipt.Done > 0 && r.spool != nil && r.plan.Do != DoRequeue
	receipt.Expected = r.expected()
	receipt.After = r.depth(ending, receipt.Expected)
}

func (r *runner) expected() int {
	switch {
	case r.plan.Do == DoUndo:
		return r.receipt.Before + r.receipt.Done
	case r.plan.Real:
		return 0
	case r.plan.Do == DoRequeue && len(r.plan.Letters) == 0:
		return r.receipt.Before
	default:
		return max(0, r.receipt.Before-r.receipt.Done)
	}
}

// depth reads the depth, for some time again while it is not the expected one.
func (r *runner) depth(ctx context.Context, expected int) int {
	deadline := time.Now().Add(depthPatience)
	pause := time.NewTicker(depthPause)
	defer pause.Stop()
	for {
		ready, _, err := r.errand.Queue(ctx, r.desk.cfg.Queue)
		if err != nil {
			return -1
		}
		if ready == expected || time.Now().After(deadline) {
			return ready
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ready
		}
	}
}
