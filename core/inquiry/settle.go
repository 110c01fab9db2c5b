package inquiry

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// Relay publishes what a committed transaction has put into the outbox.
type Relay interface {
	Published(row int64, messages []outbox.Message)
}

// lock locks the executions of inquiries in order of id, before anything of the
// inquiries is locked.
func lock(ctx context.Context, tx *store.Tx, ids []int64) error {
	rows, err := tx.InquiryExecutions(ctx, ids)
	if err != nil {
		return fmt.Errorf("find the executions of %d inquiries: %w", len(ids), err)
	}
	executions := make([]int64, len(rows))
	for i, row := range rows {
		executions[i] = row.Execution
	}
	return lockExecutions(ctx, tx, executions)
}

func lockExecutions(ctx context.Context, tx *store.Tx, executions []int64) error {
	if len(executions) == 0 {
		return nil
	}
	if err := tx.LockAskingExecutions(ctx, executions); err != nil {
		return fmt.Errorf("lock %d executions that ask: %w", len(executions), err)
	}
	return nil
}

// settled is what was drawn from inquiries that have ended.
type settled struct {
	inquiries []store.SettleInquiriesRow
	messages  []outbox.Message
}

// settle draws what follows from those of the inquiries that have ended and were not
// drawn from. Executions that only asked end, and that is told; of those that completed
// before, with a question in their result, it is told again, so that the workflow that
// waits looks again. What ended in another way was told by whoever ended it. What
// answers hold of secrets is sealed with keys. The executions are locked.
func settle(ctx context.Context, tx *store.Tx, ids []int64, source string, keys secret.Keyring) (*settled, error) {
	answers, err := sealAnswers(ctx, tx, ids, keys)
	if err != nil {
		return nil, err
	}
	pipe := tx.Pipeline()
	ended := store.Many[int64](pipe, store.EndAskingExecutions, ids, answers.inquiries, answers.responses)
	marked := store.Many[store.SettleInquiriesRow](pipe, store.SettleInquiries, answers.inquiries, answers.responses, ids)
	if err := pipe.Send(ctx); err != nil {
		return nil, fmt.Errorf("settle %d inquiries: %w", len(ids), err)
	}
	s := &settled{inquiries: marked.Rows()}
	if len(s.inquiries) == 0 {
		return s, nil
	}
	executions := make([]int64, len(s.inquiries))
	for i, row := range s.inquiries {
		executions[i] = row.Execution
	}
	outcomes, err := tx.ReadOutcomes(ctx, executions)
	if err != nil {
		return nil, fmt.Errorf("read how %d executions ended: %w", len(executions), err)
	}
	for _, o := range outcomes {
		if o.Status != attune.StatusCompleted && !slices.Contains(ended.Rows(), o.ID) {
			continue
		}
		m, err := completed(o, source)
		if err != nil {
			return nil, err
		}
		s.messages = append(s.messages, m)
	}
	return s, nil
}

// completed announces the end of an execution.
func completed(o store.ReadOutcomesRow, source string) (outbox.Message, error) {
	payload := message.ExecutionCompleted{
		ExecutionID: o.ID, ActionRef: o.ActionRef, Status: string(o.Status), Result: o.Result, CompletedAt: o.FinishedAt.UTC(),
	}
	if o.Action != nil {
		payload.ActionID = *o.Action
	}
	m, err := compose(message.TypeExecutionCompleted, payload, o.FinishedAt, source)
	if err != nil {
		return m, fmt.Errorf("tell of the end of execution %d: %w", o.ID, err)
	}
	return m, nil
}

// publish appends messages to the outbox of the transaction and hands them to the
// relay after its commit.
func publish(ctx context.Context, tx *store.Tx, relay Relay, messages []outbox.Message) error {
	if len(messages) == 0 {
		return nil
	}
	row, err := outbox.Append(ctx, tx, messages)
	if err != nil {
		return err
	}
	if relay != nil {
		tx.AfterCommit(func() { relay.Published(row, messages) })
	}
	return nil
}
