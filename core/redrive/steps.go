package redrive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// choice is an item that was found in the queue, with its delivery. Items without a
// letter have none.
type choice struct {
	item  *Item
	whole *Whole
}

// collect takes from the queue until all that is planned was found, or the bound was
// reached. What is not in the plan is held, and goes back at the end.
func (r *runner) collect(ctx context.Context) ([]choice, error) {
	wanted := map[string][]int{}
	found := make([]*Whole, len(r.plan.Items))
	missing := 0
	for i := range r.plan.Items {
		if item := &r.plan.Items[i]; item.Skip == "" && item.Letter != nil {
			wanted[item.Letter.Key()] = append(wanted[item.Letter.Key()], i)
			missing++
		}
	}
	if missing > 0 {
		var err error
		if r.taking, err = r.errand.Take(ctx, r.desk.cfg.Queue, prefetch, r.way()); err != nil {
			return nil, err
		}
	}
	for taken := 0; missing > 0 && taken < r.plan.Bound; taken++ {
		w, err := r.taking.Next(ctx, nextPatience)
		if errors.Is(err, broker.ErrTakingOver) && r.taking.Settled(ctx) == nil {
			break // it answers: somebody else took the rest
		}
		if err != nil {
			return nil, r.lost(err)
		}
		l := Read(w, 0)
		if at := wanted[l.Key()]; len(at) > 0 {
			found[at[0]], wanted[l.Key()] = w, at[1:]
			missing--
		}
	}
	r.receipt.Absent = missing
	var chosen []choice
	for i := range r.plan.Items {
		item := &r.plan.Items[i]
		if item.Skip == "" && (item.Letter == nil || found[i] != nil) {
			chosen = append(chosen, choice{item, found[i]})
		}
	}
	return chosen, nil
}

// lost says of an error that the broker went away, where it did.
func (r *runner) lost(err error) error {
	if r.errand.Lost() && !errors.Is(err, broker.ErrNotConnected) {
		return fmt.Errorf("%w: %w", broker.ErrNotConnected, err)
	}
	return err
}

// way is how what is held goes back. A queue that nobody may look into can be taken
// from all the same.
func (r *runner) way() broker.Return {
	way, err := Strategy(&r.plan.Queue)
	if err != nil {
		return broker.ReturnByNack
	}
	return way.Return
}

// one does what is planned with one letter.
func (r *runner) one(ctx context.Context, c choice) error {
	n := 0
	if c.whole != nil {
		var err error
		if n, err = r.keep(ctx, c.whole); err != nil {
			return err
		}
	}
	crashpoint.Reach("redrive:spooled")
	var err error
	switch r.plan.Do {
	case DoRequeue:
		err = r.requeue(ctx, c)
	case DoMove:
		err = r.errand.Send(ctx, r.plan.Exchange, r.plan.Key, r.again(c.whole, true))
	}
	if err != nil {
		return r.leave(n, err)
	}
	crashpoint.Reach("redrive:confirmed")
	if c.whole == nil {
		return nil
	}
	if err := r.ack(ctx, c.whole); err != nil {
		return err
	}
	crashpoint.Reach("redrive:acknowledged")
	if r.spool == nil {
		return nil
	}
	return r.spool.mark(n, StateRemoved)
}

// ack has letters leave their queue, and waits until the broker has taken that.
func (r *runner) ack(ctx context.Context, letters ...*Whole) error {
	for _, w := range letters {
		if err := r.taking.Ack(ctx, w); err != nil {
			return err
		}
	}
	return r.taking.Settled(ctx)
}

// keep writes a letter down before anything happens to it: into the spool first, and
// into the ledger where there is one and it is to be removed. The ledger comes last,
// because whoever reads there that a letter is decided drops it.
func (r *runner) keep(ctx context.Context, w *Whole) (int, error) {
	n, err := r.note(w)
	if err != nil {
		return 0, err
	}
	if err := r.safe(ctx, w); err != nil {
		return 0, r.leave(n, err)
	}
	return n, nil
}

// leave says in the spool that a letter stays in its queue.
func (r *runner) leave(n int, cause error) error {
	if n == 0 {
		return cause
	}
	return errors.Join(cause, r.spool.mark(n, StateKept))
}

// requeue has the execution of a letter requested again, or sends what is about none.
func (r *runner) requeue(ctx context.Context, c choice) error {
	if c.item.Verdict.Do == Replay {
		return r.errand.Send(ctx, c.item.Letter.SentTo, c.item.Letter.SentKey, r.again(c.whole, false))
	}
	request, err := r.reset(ctx, c.item)
	if err != nil {
		return err
	}
	crashpoint.Reach("redrive:committed")
	err = r.errand.Send(ctx, message.ExchangeExecutions, message.KeyExecutionRequested, request)
	if errors.Is(err, broker.ErrNotConnected) {
		return fmt.Errorf("%w: %w", errHalf, err)
	}
	return err
}

// reset puts the row back, with a record of what it was, and makes the request.
func (r *runner) reset(ctx context.Context, item *Item) (*Whole, error) {
	var row store.RedriveResetRow
	err := r.desk.store.Tx(ctx, fmt.Sprintf("reset execution %d", item.Row.ID), func(ctx context.Context, tx *store.Tx) error {
		if err := r.judgeAgain(ctx, tx, item); err != nil {
			return err
		}
		if item.Verdict.Do == Publish {
			again, err := tx.RedriveRequest(ctx, item.Row.ID)
			row = store.RedriveResetRow(again)
			return changed(err)
		}
		var err error
		row, err = tx.RedriveReset(ctx, item.Row.ID, item.Row.Status, item.Row.Updated)
		if err != nil {
			return changed(err)
		}
		details, err := json.Marshal(map[string]any{
			"op": r.plan.Op, "by": r.desk.cfg.Actor, "source": r.desk.cfg.Source, "reason": r.reason, "override": r.plan.Override, "before": item.Row,
		})
		if err != nil {
			return err
		}
		return tx.RedriveAudit(ctx, store.RedriveAuditParams{Action: "dlq.requeue", Execution: item.Row.ID, ActionRef: row.ActionRef, Details: details})
	})
	if errors.Is(err, errChanged) {
		return nil, errChanged
	}
	if err != nil {
		return nil, err
	}
	return r.request(&row, item.Letter)
}

// judgeAgain compares the verdict with that of the plan. What else it depends on than
// the row itself may have changed: the parent, the action, the lease of an item of work.
func (r *runner) judgeAgain(ctx context.Context, tx *store.Tx, item *Item) error {
	rows, err := Rows(ctx, tx.Queries, []int64{item.Row.ID})
	if err != nil {
		return err
	}
	if now := Judge(Facts{Letter: item.Letter, Row: rows[item.Row.ID], Known: true}); now.Do != item.Verdict.Do {
		return errChanged
	}
	return nil
}

func changed(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errChanged
	}
	return err
}

// request is a fresh request for an execution, of which a letter may tell how often it
// was sent again.
func (r *runner) request(row *store.RedriveResetRow, of *Letter) (*Whole, error) {
	now := time.Now()
	envelope := message.New(message.TypeExecutionRequested, message.ExecutionRequested{
		ExecutionID: row.ID, ActionID: row.Action, ActionRef: row.ActionRef, ParentID: row.Parent, EnforcementID: row.Enforcement, Config: row.Config,
	}, now, r.desk.cfg.Source)
	body, err := envelope.Encode()
	if err != nil {
		return nil, err
	}
	return &Whole{
		MessageID: envelope.MessageID, CorrelationID: envelope.CorrelationID, Type: envelope.MessageType, ContentType: "application/json",
		Timestamp: now, Headers: r.marks(of), Body: body,
	}, nil
}

// marks are the headers by which others see who sent a message again, and how often
// that was done.
func (r *runner) marks(of *Letter) broker.Table {
	before := int64(0)
	if of != nil {
		before = of.Requeues
	}
	return broker.Table{
		headerRequeues: before + 1, headerRequeueOp: r.plan.Op, headerRequeuedBy: r.desk.cfg.Actor, headerRequeuedAt: time.Now().UTC().Format(time.RFC3339),
	}
}

// brokerHeaders are what the broker wrote or obeys: they are not sent again.
var brokerHeaders = []string{"x-delivery-count", "x-acquired-count", "x-stream-offset", "CC", "BCC"}

// again is a letter as it is published once more. With its history it is a letter
// still; without, a message.
func (r *runner) again(w *Whole, history bool) *Whole {
	again := *w
	again.UserID, again.Expiration = "", ""
	again.Headers = broker.Table{}
	for key, value := range w.Headers {
		death := key == "x-death" || strings.HasPrefix(key, "x-first-death-") || strings.HasPrefix(key, "x-last-death-")
		if death && !history || slices.Contains(brokerHeaders, key) {
			continue
		}
		again.Headers[key] = value
	}
	letter := Letter{Whole: w}
	letter.readRequeues()
	maps.Copy(again.Headers, r.marks(&letter))
	if w.UserID != "" {
		again.Headers["x-attune-original-user-id"] = w.UserID
	}
	if w.Expiration != "" {
		again.Headers["x-attune-original-expiration"] = w.Expiration
	}
	for _, key := range []string{"CC", "BCC"} {
		if value, ok := w.Headers[key]; ok {
			again.Headers["x-attune-original-"+strings.ToLower(key)] = value
		}
	}
	return &again
}

// drain removes what lay in the queue when it was planned, in batches, each of which
// is safe in the spool before it leaves.
func (r *runner) drain(ctx context.Context) error {
	var err error
	if r.taking, err = r.errand.Take(ctx, r.desk.cfg.Queue, drainBatch, r.way()); err != nil {
		return err
	}
	for left := r.plan.Bound; left > 0; {
		if err := r.next(ctx, false); err != nil {
			return err
		}
		batch, over, err := r.batch(ctx, min(left, drainBatch))
		if err != nil {
			return err
		}
		left -= len(batch)
		if over {
			r.receipt.Absent = left
			return nil
		}
	}
	return nil
}

// drainBatch is how many messages are made safe together.
const drainBatch = 100

// batch takes, spools and acknowledges up to n messages. Over says that no more came.
// Without answer whether they have left is unknown of all of them.
func (r *runner) batch(ctx context.Context, n int) (batch []*Whole, over bool, err error) {
	batch, numbers, over, err := r.gather(ctx, n)
	if err != nil {
		return nil, false, err
	}
	crashpoint.Reach("redrive:drain-spooled")
	if err := r.ack(context.WithoutCancel(ctx), batch...); err != nil {
		r.receipt.Unknown += len(batch)
		return nil, false, err
	}
	for i := range batch {
		if r.spool != nil {
			if err := r.spool.mark(numbers[i], StateRemoved); err != nil {
				return nil, false, err
			}
		}
		if err := r.settled(nil); err != nil {
			return nil, false, err
		}
	}
	return batch, over, nil
}

// gather takes up to n messages and makes their copies safe. With an error none of
// them leaves the queue.
func (r *runner) gather(ctx context.Context, n int) (batch []*Whole, numbers []int, over bool, err error) {
	defer func() {
		if err != nil {
			for _, n := range numbers {
				err = r.leave(n, err)
			}
		}
	}()
	for len(batch) < n && !over {
		w, err := r.taking.Next(ctx, nextPatience)
		switch {
		case errors.Is(err, broker.ErrTakingOver) && r.taking.Settled(ctx) == nil:
			over = true
			continue
		case err != nil:
			return nil, numbers, false, r.lost(err)
		}
		number, err := r.note(w)
		if err != nil {
			return nil, numbers, false, err
		}
		batch, numbers = append(batch, w), append(numbers, number)
	}
	return batch, numbers, over, r.safe(ctx, batch...)
}

// note writes a letter to the spool, where it is safe only after safe.
func (r *runner) note(w *Whole) (int, error) {
	if r.spool == nil {
		return 0, nil
	}
	return r.spool.add(w, r.desk.cfg.Queue)
}

// safe makes sure that letters outlive their removal.
func (r *runner) safe(ctx context.Context, letters ...*Whole) error {
	if r.spool != nil {
		if err := r.spool.sync(); err != nil {
			return err
		}
	}
	return r.ledger(ctx, letters...)
}

// undo publishes what an operation removed back to the queue, and writes down that
// it did, so that the same again puts back only the rest.
func (r *runner) undo(ctx context.Context) error {
	source, err := r.desk.spooled(r.plan.Order.Op)
	if err != nil {
		return err
	}
	marks, err := reopenSpool(r.desk.cfg.Spool, r.plan.Order.Op)
	if err != nil {
		return err
	}
	defer func() { _ = marks.close() }() // a mark that is lost puts a letter back twice
	for i := range source.Letters {
		l := &source.Letters[i]
		if !missing(l.State) {
			continue
		}
		if err := r.next(ctx, false); err != nil {
			return err
		}
		if err := r.settled(r.putBack(ctx, source, marks, i)); err != nil {
			return err
		}
	}
	return nil
}

// putBack publishes one letter of an operation again. The ledger is told first: a
// handler drops what it finds decided there.
func (r *runner) putBack(ctx context.Context, source *Spooled, marks *spool, i int) error {
	w := source.Letters[i].Whole
	if err := r.returned(ctx, source, w); err != nil {
		return err
	}
	again := r.again(w, true)
	again.Headers["x-attune-undo-op"] = source.Op
	if err := marks.mark(source.numbers[i], stateReturning); err != nil {
		return err
	}
	if err := r.errand.Send(ctx, "", source.Queue, again); err != nil {
		if !errors.Is(err, broker.ErrUnanswered) {
			err = errors.Join(err, marks.mark(source.numbers[i], StateRemoved))
		}
		return err
	}
	crashpoint.Reach("redrive:undone")
	return marks.mark(source.numbers[i], StateUndone)
}
