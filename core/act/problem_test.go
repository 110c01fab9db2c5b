package act

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

func TestErrorsAreProblems(t *testing.T) {
	t.Parallel()
	retry := &Request{Kind: RetryExecution, Target: Target{ID: 7}}
	requeue := &Request{Kind: RequeueDeadLetter, Target: Target{ID: 7}}
	notEnded := fmt.Errorf("repeat execution 7: %w: it is running", triage.ErrNotEnded)
	o := New(Config{}, triage.New(triage.Config{}, &store.Store{}, nil), nil)
	for text, c := range map[string]struct {
		request *Request
		err     error
		kind    ProblemKind
	}{
		"execution 7 has not ended: it is running: wait for its end, or end it with `attune-executor execution cancel 7`": {
			retry, notEnded, Refused,
		},
		"dead letter 7: its execution has not ended: it is running: `attune-executor dlq show 7` says more": {
			requeue, notEnded, Refused,
		},
		"execution 7 has been repeated already: the newest attempt is execution 9: " +
			"`attune-executor execution retry 9` repeats that one once it has ended": {
			retry, &triage.AlreadyRetriedError{ID: 7, By: 9}, Refused,
		},
		"there is no execution 7: `attune-executor execution list` shows the newest": {
			retry, fmt.Errorf("repeat: %w", triage.ErrNoExecution), Missing,
		},
		"dead letter 7: its execution does not exist any more: discard it": {requeue, triage.ErrNoExecution, Refused},
		"there is no dead letter 7: `attune-executor dlq list` shows the newest": {
			requeue, triage.ErrNoDeadLetter, Missing,
		},
		"dead letter 7: it completed": {requeue, fmt.Errorf("%w: it completed", triage.ErrUseless), Refused},
		"there is no worker w-1: `attune-executor workers list` shows them": {
			&Request{Kind: DrainWorker, Target: Target{Ref: "w-1"}}, triage.ErrNoWorker, Missing,
		},
		"q is in use by another session": {
			requeue, &triage.LockedError{Name: "q"}, Conflict,
		},
		"the broker is not connected yet: start it, or correct message_queue.url: nothing was done": {requeue, broker.ErrNotConnected, Unreachable},
	} {
		p, known := errors.AsType[*Problem](o.problem(c.request, c.err, true))
		require.True(t, known, text)
		require.Equal(t, text, p.Error())
		require.Equal(t, c.kind, p.Kind, text)
		require.ErrorIs(t, p, c.err)
	}
	broke := errors.New("it broke")
	require.Equal(t, broke, o.problem(retry, broke, true))
	require.NoError(t, o.problem(retry, nil, true))
}

// An error of a plan does not name the read; an error of a run names its result.
func TestErrorsOfTheDatabaseAreShort(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=2")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	away := fmt.Errorf("plan a pause: acquire connection: %w", pool.Ping(testkit.Context(t)))
	o := New(Config{}, triage.New(triage.Config{}, &store.Store{}, nil), nil)
	planned := o.problem(&Request{}, away, false)
	require.Regexp(t, `^the database refuses connections, nothing listens there: start it`, planned.Error())
	require.NotContains(t, planned.Error(), "acquire")
	require.ErrorIs(t, planned, away)
	require.ErrorContains(t, o.problem(&Request{}, away, true), "nothing more was done")
}
