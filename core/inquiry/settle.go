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
type Relay = outbox.Publishing

// lockAnswered locks the execution of an inquiry, before anything of the inquiry is
// locked, and the workflows above it. It returns which of them has ended or shall stop,
// so that nothing waits for an answer any more, or nothing.
func lockAnswered(ctx context.Context, tx *store.Tx, inquiry int64) (stopped string, err error) {
	rows, err := tx.InquiryExecutions(ctx, []int64{inquiry})
	if err != nil {
		return "", fmt.Errorf("find the execution of inquiry %d: %w", inquiry, err)
	}
	if len(rows) == 0 {
		return "", nil
	}
	execution := rows[0].Execution
	if err := tx.LockAboveAsking(ctx, execution); err != nil {
		return "", fmt.Errorf("lock the workflows above execution %d: %w", execution, err)
	}
	if err := lockExecutions(ctx, tx, []int64{execution}); err != nil {
		return "", err
	}
	above, err := tx.StoppedAboveAsking(ctx, execution)
	if err != nil {
		return "", fmt.Errorf("look for what waits for execution %d: %w", execution, err)
	}
	if len(above) == 0 {
		return "", nil
	}
	return stopText(above[0]), nil
}

func stopText(row store.StoppedAboveAskingRow) string {
	what := fmt.Sprintf("execution %d", row.ID)
	if row.Height > 0 {
		what = fmt.Sprintf("workflow %d above it", row.ID)
	}
	switch {
	case !row.Status.Terminal():
		return what + " is being cancelled"
	case row.Status == attune.StatusCancelled:
		return what + " was cancelled"
	default:
		return fmt.Sprintf("%s has ended (%s)", what, row.Status)
	}
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
	marked := store.Many[store.SettleInquiriesRow](pipe, store.SettleInquiries, answers.inquiries, answers.responses,
		ids)
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
		ExecutionID: o.ID, ActionRef: o.ActionRef, Status: string(o.Status), Result: o.Result,
		CompletedAt: o.FinishedAt.UTC(),
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
	_, err := outbox.Hand(ctx, tx, relay, messages)
	return err
}
