package inquiry

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// Relay publishes the messages that a committed transaction has put into the outbox.
type Relay = outbox.Publishing

// lockAnswered locks the workflows above the execution of an inquiry, then the execution; the caller locks the inquiry
// after them. stopped names one that has ended or is being cancelled, so that nothing waits for the answer.
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
		return "", fmt.Errorf("read the workflows above execution %d: %w", execution, err)
	}
	if len(above) == 0 {
		return "", nil
	}
	row := above[0]
	what := fmt.Sprintf("execution %d", row.ID)
	if row.Height > 0 {
		what = fmt.Sprintf("workflow %d above it", row.ID)
	}
	switch {
	case !row.Status.Terminal():
		return what + " is being cancelled", nil
	case row.Status == lifecycle.StatusCancelled:
		return what + " was cancelled", nil
	default:
		return fmt.Sprintf("%s has ended (%s)", what, row.Status), nil
	}
}

func lockExecutions(ctx context.Context, tx *store.Tx, executions []int64) error {
	if len(executions) == 0 {
		return nil
	}
	if err := tx.LockForChange(ctx, executions); err != nil {
		return fmt.Errorf("lock %d executions that ask: %w", len(executions), err)
	}
	return nil
}

// settled are the newly settled inquiries and the messages for the outbox.
type settled struct {
	inquiries []store.SettleInquiriesRow
	messages  []outbox.Message
}

// settle settles the ended inquiries among ids that are not settled yet, and seals the secrets of their answers. The
// executions must be locked. Executions of core.ask end. For them, and for completed executions, execution.completed is
// sent, for the latter once more, so that a waiting workflow advances.
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
		return nil, fmt.Errorf("read the results of %d executions: %w", len(executions), err)
	}
	for _, o := range outcomes {
		if o.Status != lifecycle.StatusCompleted && !slices.Contains(ended.Rows(), o.ID) {
			continue
		}
		m, err := outbox.Completed(o, o.FinishedAt, source)
		if err != nil {
			return nil, fmt.Errorf("compose the completion of execution %d: %w", o.ID, err)
		}
		s.messages = append(s.messages, m)
	}
	return s, nil
}

// publish appends messages to the outbox of the transaction; the relay gets them after the commit.
func publish(ctx context.Context, tx *store.Tx, relay Relay, messages []outbox.Message) error {
	if len(messages) == 0 {
		return nil
	}
	_, err := outbox.Send(ctx, tx, relay, messages)
	return err
}
