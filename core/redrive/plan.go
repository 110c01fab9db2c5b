package redrive

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// What can be done with letters.
const (
	DoRequeue = "requeue"
	DoDiscard = "discard"
	DoPurge   = "purge" // all that lay there when it was planned
	DoMove    = "move"
	DoUndo    = "undo" // put back what an operation removed
)

// Order is what an operator asks for.
type Order struct {
	Do string `json:"do"`
	// Letters are those of a snapshot, frozen. A purge names none.
	Letters []Letter `json:"-"`
	// Rows are executions whose letters a handler took; they can be requeued only.
	Rows []int64 `json:"rows,omitempty"`
	// Exchange and Key are where letters are moved to.
	Exchange string `json:"exchange,omitempty"`
	Key      string `json:"key,omitempty"`
	// Override requeues what is blocked too, and says why.
	Override string `json:"override,omitempty"`
	// Real has the broker purge the queue: also what comes meanwhile, without a copy.
	Real bool `json:"real,omitempty"`
	// Op is the operation that is undone.
	Op string `json:"op,omitempty"`
}

// Item is one letter or row of a plan.
type Item struct {
	Letter  *Letter `json:"letter,omitempty"`
	Row     *Row    `json:"row,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Skip says why the run leaves it alone; empty if it does not.
	Skip string `json:"skip,omitempty"`
}

// PurgeOffered is the depth above which it is offered that the broker purges the queue
// by itself, since copies of so many take long.
const PurgeOffered = 50_000

// DrainRate is about how many messages are copied and removed in a second.
const DrainRate = 5_000

// Plan is what a run would do. Nothing was locked or written for it.
type Plan struct {
	Order
	Op    string    `json:"id"`
	At    time.Time `json:"at"`
	Queue Queue     `json:"queue"`
	Items []Item    `json:"items"`
	// Bound is how many messages a run takes from the queue at most: those that lay
	// there when it was planned.
	Bound int     `json:"bound"`
	Rate  float64 `json:"rate"`
	// Checks are about the target, and Back says that what dies there comes back.
	Checks []Check `json:"checks"`
	Back   bool    `json:"back,omitempty"`
	// Target and TargetKey are where it is published to; empty when nothing is.
	Target    string `json:"target,omitempty"`
	TargetKey string `json:"target_key,omitempty"`
	// Route is where that leads; nil if it is not known, or nothing is published.
	Route *Route `json:"route,omitempty"`
	// Ledger says that what is removed is written to the ledger first, and Spool that a
	// copy of it is spooled, from which it can be put back.
	Ledger bool `json:"ledger,omitempty"`
	Spool  bool `json:"spool,omitempty"`
	// Sealed says that the copy can be read with a key only.
	Sealed bool `json:"sealed,omitempty"`
	// Undoes is what an undo takes back, and Unsure how many of its letters may be back
	// already, or never left, because whoever removed or put them back died.
	Undoes string `json:"undoes,omitempty"`
	Unsure int    `json:"unsure,omitempty"`
	// Running is who ran another plan on the queue when this one was made; empty if nobody
	// did.
	Running string `json:"running,omitempty"`
	// Nothing says why there is nothing to run.
	Nothing string `json:"nothing,omitempty"`
}

// Gone reports whether nothing brings back what the plan removes.
func (p *Plan) Gone() bool {
	return p.Real || (p.Do == DoDiscard || p.Do == DoPurge || p.Do == DoMove) && !p.Spool && !p.Ledger
}

// Work counts the items that a run would touch.
func (p *Plan) Work() int {
	if p.Do == DoPurge {
		return p.Bound
	}
	n := 0
	for _, item := range p.Items {
		if item.Skip == "" {
			n++
		}
	}
	return n
}

// ErrDirect says that rows are reset only where that is allowed.
var ErrDirect = errors.New("rows of an installation without our tables are reset only with --allow-direct-writes")

// Plan says what an order would do.
func (d *Desk) Plan(ctx context.Context, order Order) (*Plan, error) {
	p := &Plan{Order: order, Op: newOp(), At: time.Now(), Rate: d.cfg.Rate}
	errand, err := broker.OpenErrand(ctx, d.cfg.Broker)
	if err != nil {
		return nil, err
	}
	defer errand.Close()
	q, err := d.look(ctx, errand)
	if err != nil && (order.Do != DoRequeue || len(order.Letters) > 0) {
		return nil, err
	}
	if q != nil {
		p.Queue, p.Bound = *q, q.Ready
	}
	for i := range order.Letters {
		if order.Do != DoPurge { // what was looked at a moment ago may be on its way back still
			p.Bound = max(p.Bound, order.Letters[i].Seq+1)
		}
	}
	if p.Running, err = Running(ctx, d.store.Queries, d.cfg.Queue); err != nil {
		return nil, err
	}
	if err := d.planCopies(ctx, p); err != nil {
		return nil, err
	}
	switch order.Do {
	case DoRequeue:
		err = d.planRequeue(ctx, errand, p)
	case DoMove:
		err = d.planMove(ctx, errand, p)
	case DoUndo:
		err = d.planUndo(p)
	case DoDiscard:
		p.add(order.Letters)
	case DoPurge:
	default:
		err = fmt.Errorf("%q is nothing that can be done with letters", order.Do)
	}
	if err != nil {
		return nil, err
	}
	p.conclude()
	return p, nil
}

// planCopies says where copies are kept of what is removed. Where there is neither a
// ledger nor a spool nothing is, unless somebody has turned the spool off.
func (d *Desk) planCopies(ctx context.Context, p *Plan) error {
	if p.Real || p.Do == DoRequeue && len(p.Letters) == 0 {
		return nil
	}
	if p.Do == DoDiscard || p.Do == DoPurge {
		shape, err := d.store.RedriveShape(ctx)
		if err != nil {
			return fmt.Errorf("look at the schema: %w", err)
		}
		p.Ledger = shape.Ours
	}
	if p.Do == DoUndo {
		return nil // planUndo reads it
	}
	state := d.SpoolState()
	if state.On && state.Problem != "" {
		return errors.New(state.Problem)
	}
	if p.Spool, p.Sealed = state.On && state.Folder != "", state.Sealed; p.Spool || p.Ledger || !state.On {
		return nil
	}
	return errNoSpool
}

// conclude says why there may be nothing to run.
func (p *Plan) conclude() {
	switch {
	case len(p.Queue.Alarms) > 0 && p.Do != DoDiscard && p.Do != DoPurge:
		p.Nothing = "the broker takes no messages: " + p.Queue.Alarms[0]
	case refused(p.Checks) != "":
		p.Nothing = refused(p.Checks)
	case p.Work() == 0 && p.Do == DoPurge:
		p.Nothing = "the queue is empty"
	case p.Work() == 0 && p.Nothing == "":
		p.Nothing = "none of them can be: " + firstSkip(p.Items)
	case p.Queue.Ready == 0 && len(p.Letters) > 0 && p.Do != DoUndo:
		p.Nothing = "the queue is empty now: take another snapshot"
	}
}

func firstSkip(items []Item) string {
	if len(items) == 0 {
		return "there are none"
	}
	return items[0].Skip
}

func (p *Plan) add(letters []Letter) {
	for i := range letters {
		p.Items = append(p.Items, Item{Letter: &letters[i]})
	}
}

// planRequeue judges every letter and row again.
func (d *Desk) planRequeue(ctx context.Context, errand *broker.Errand, p *Plan) error {
	shape, err := d.store.RedriveShape(ctx)
	if err != nil {
		return fmt.Errorf("look at the schema: %w", err)
	}
	var ids []int64
	for i := range p.Letters {
		if id := p.Letters[i].Execution; id != 0 {
			ids = append(ids, id)
		}
	}
	rows, err := Rows(ctx, d.store.Queries, append(ids, p.Rows...))
	if err != nil {
		return err
	}
	p.add(p.Letters)
	for _, id := range p.Rows {
		p.Items = append(p.Items, Item{Row: rows[id]})
	}
	resets := false
	for i := range p.Items {
		item := &p.Items[i]
		if item.Letter != nil {
			item.Row = rows[item.Letter.Execution]
		} else if item.Row == nil {
			item.Skip = "the execution is gone"
			continue
		}
		item.Verdict = Judge(Facts{Letter: item.Letter, Row: item.Row, Known: true, Ours: shape.Ours})
		item.Skip = p.skip(item.Verdict)
		resets = resets || item.Skip == "" && item.Verdict.Do != Replay
	}
	p.inOrder()
	if !resets {
		return d.checkReplays(ctx, errand, p)
	}
	switch {
	case !d.cfg.Direct:
		return ErrDirect
	case !shape.Audits:
		return errors.New("the schema has no audit_event, and no row is reset without a record")
	}
	p.Target, p.TargetKey = message.ExchangeExecutions, message.KeyExecutionRequested
	p.Checks, p.Route, err = d.checkTarget(ctx, errand, p.Target, p.TargetKey)
	return errors.Join(err, d.checkReplays(ctx, errand, p))
}

// skip says why an item is not requeued.
func (p *Plan) skip(v Verdict) string {
	switch {
	case v.Do == Requeue, v.Do == Publish, v.Do == Replay:
		return ""
	case v.Do == Blocked && p.Override != "":
		return ""
	default:
		return v.Do + ": " + v.Why
	}
}

// checkReplays leaves alone what would reach no queue.
func (d *Desk) checkReplays(ctx context.Context, errand *broker.Errand, p *Plan) error {
	type target struct{ exchange, key string }
	known := map[target]string{}
	for i := range p.Items {
		item := &p.Items[i]
		if item.Skip != "" || item.Verdict.Do != Replay {
			continue
		}
		at := target{item.Letter.SentTo, item.Letter.SentKey}
		why, asked := known[at]
		if !asked {
			checks, _, err := d.checkTarget(ctx, errand, at.exchange, at.key)
			if err != nil {
				return err
			}
			why = refused(checks)
			known[at] = why
		}
		item.Skip = why
	}
	return nil
}

// inOrder puts the items into the order in which their executions were requested,
// so that first in stays first out within an action and its groups.
func (p *Plan) inOrder() {
	slices.SortStableFunc(p.Items, func(a, b Item) int { return cmp.Compare(a.order(), b.order()) })
}

func (i *Item) order() int64 {
	if i.Row != nil {
		return i.Row.ID
	}
	return 0
}

func (d *Desk) planMove(ctx context.Context, errand *broker.Errand, p *Plan) error {
	if p.Exchange == "" && p.Key == d.cfg.Queue {
		return errors.New("the target is the queue itself")
	}
	p.add(p.Letters)
	p.Target, p.TargetKey = p.Exchange, p.Key
	var err error
	if p.Checks, p.Route, err = d.checkTarget(ctx, errand, p.Exchange, p.Key); err != nil {
		return err
	}
	queues, err := d.routes(ctx, p.Exchange, p.Key)
	if err == nil && slices.Contains(queues, d.cfg.Queue) {
		return errors.New("the target leads to the queue itself")
	}
	back, err := d.leadsBack(ctx, p.Exchange, p.Key)
	if err != nil {
		p.Checks = append(p.Checks, Check{Warn: true, Text: "whether what dies there comes back is unknown: " + err.Error()})
		return nil //nolint:nilerr // it is said
	}
	if p.Back = back; back {
		p.Checks = append(p.Checks, Check{Warn: true, Text: "what dies there comes back to " + d.cfg.Queue})
	}
	return nil
}

func (d *Desk) planUndo(p *Plan) error {
	s, err := d.spooled(p.Order.Op)
	if err != nil {
		return err
	}
	p.Target, p.TargetKey = "", s.Queue
	p.Undoes = s.Do
	p.Route = &Route{Queues: []string{s.Queue}, Ahead: p.Queue.Ready, Consumers: p.Queue.Consumers}
	for i := range s.Letters {
		item := Item{Letter: &s.Letters[i]}
		switch state := s.Letters[i].State; state {
		case StateRemoved:
		case stateSpooled, stateReturning:
			p.Unsure++
		default:
			item.Skip = "it is " + state
		}
		p.Items = append(p.Items, item)
	}
	return nil
}

// lockName is the lock of the database on the queue.
func (d *Desk) lockName() string { return LockName(d.cfg.Queue) }

// LockName is the lock of the database on a dead-letter queue. Whoever runs a plan
// on it, or on the ledger of it, holds it.
func LockName(queue string) string { return "the queue " + queue }

// Lock takes the lock for an operation, or says who holds it.
func (d *Desk) Lock(ctx context.Context, op string) (*store.SessionLock, error) {
	holder := fmt.Sprintf("%s %s op %.8s since %s", d.cfg.Source, d.cfg.Actor, op, time.Now().UTC().Format("15:04:05Z"))
	return d.store.LockSession(ctx, d.lockName(), holder)
}

// Running says who runs a plan on a queue, or on the ledger of it, with the operation
// and since when; empty where nobody does.
func Running(ctx context.Context, q *store.Queries, queue string) (string, error) {
	row, err := q.SessionLockHolder(ctx, LockName(queue))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("find who acts on %s: %w", queue, err)
	}
	return cmp.Or(row.Holder, "another session"), nil
}
