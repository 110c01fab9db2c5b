package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/deadletter"
)

// desk settles dead letters after their batches; *deadletter.Handler is one.
type desk interface {
	Settle(ctx context.Context, letter *deadletter.Letter)
	GiveUp(ctx context.Context, letter *deadletter.Letter, cause error) error
	Absent(ctx context.Context, letters []*deadletter.Letter) (exist []*deadletter.Letter, err error)
}

// SubmitLetters passes dead letters that a batch must decide to the loop. It blocks while the loop
// is busy.
func (h *hot) SubmitLetters(ctx context.Context, letters []*deadletter.Letter) error {
	select {
	case h.letters <- letters:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand dead letters to the schedulers: %w", ctx.Err())
	}
}

// ofLetters are dead letters as items, each settled alone.
func ofLetters(letters []*deadletter.Letter) []item {
	items := make([]item, len(letters))
	for i, l := range letters {
		items[i] = item{execution: l.Execution, letter: l, delivery: l.Delivery(), alone: true}
	}
	return items
}

// settleLetter settles a dead letter after a committed batch, or postpones it because no worker had
// capacity for its execution.
func (l *lane) settleLetter(ctx context.Context, it item) {
	if !it.letter.Open() {
		l.desk.Settle(ctx, it.letter)
		return
	}
	it.attempts = min(it.attempts, maxAttempts/2) // it did not fail
	l.later.add(it, time.Now())
}

// roomForLetters is how many more dead letters may wait for capacity: they must not block decidable
// ones.
func (l *lane) roomForLetters() int {
	room := deadletter.MaxOpen
	for i := range l.later.items {
		if it := &l.later.items[i]; it.letter != nil && it.letter.Open() {
			room--
		}
	}
	return max(room, 0)
}

// postponeLetter handles a dead letter whose batch failed alone. In the end an operator decides: a
// dead letter must not be dead-lettered again.
func (l *lane) postponeLetter(ctx context.Context, it item, f batch.Failure) {
	cause := f.Err
	if f.Verdict == batch.Suspect && it.attempts+1 >= maxAttempts {
		bounded, cancel := context.WithTimeout(ctx, sideTimeout)
		defer cancel()
		err := l.desk.GiveUp(bounded, it.letter, cause)
		if err == nil {
			return
		}
		cause = err
	}
	l.logger.WarnContext(ctx, "Dead letter cannot be decided now and is tried again",
		"message_id", it.delivery.MessageID, "attempts", it.attempts+1, "error", cause)
	it.blocked = f.Verdict == batch.Blocked
	l.later.add(it, time.Now())
}
