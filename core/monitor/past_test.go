package monitor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

func total(p *Past) (done, failed, deadLetters float64) {
	for _, m := range p.Minutes {
		done, failed, deadLetters = done+m.Done, failed+m.Failed, deadLetters+m.DeadLetters
	}
	return done, failed, deadLetters
}

// The last hour counts the executions that ended in it, by minute.
func TestTheLastHourIsCountedFromTheRows(t *testing.T) {
	t.Parallel()
	b := setup(t, fakeBroker{})
	ctx := testkit.Context(t)
	p, err := b.Past(ctx)
	require.NoError(t, err)
	require.Len(t, p.Minutes, 60)
	done, _, _ := total(p)
	require.Zero(t, done)
	require.Len(t, p.Depth, 1, "the broker's own record of the dead-letter queue")

	action := testkit.Action(t, b.Store, "demo.echo")
	b.Ended(t, action, 500, "completed", 300)
	b.Ended(t, action, 600, "completed", 59)
	b.Ended(t, action, 118, "failed", 59)
	testkit.Exec(t, b.Store, `insert into dead_letter (fingerprint, queue, routing_key, exchange, body, created)
		select 'f' || i, 'q', 'k', 'x', '', now() - make_interval(mins => i) from generate_series(0, 90) i`)
	p, err = b.Past(ctx)
	require.NoError(t, err)
	require.False(t, p.Estimated)
	done, failed, deadLetters := total(p)
	require.InDelta(t, 600+118+100, done, 2, "a hundred of the five hundred ended within the hour")
	require.InDelta(t, 118, failed, 0)
	require.InDelta(t, 60, deadLetters, 1)
	require.InDelta(t, 10+2+2, p.Minutes[40].Done, 3)
	require.Equal(t, p.At, p.Minutes[59].At)
	require.True(t, p.DeadLetters)
}

// The past counts the waiting dead letters at the end of each minute, also ones from before the hour.
func TestThePastCountsWaitingDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t, fakeBroker{})
	testkit.Exec(t, b.Store, `insert into dead_letter (fingerprint, queue, decision, created, decided_at)
		select 'a' || i, 'q', null, now() - interval '3 hours', null::timestamptz from generate_series(1, 2) i
		union all
		select 'b' || i, 'q', 'requeued', now() - interval '90 minutes', now() - interval '40.5 minutes' from generate_series(1, 5) i
		union all
		select 'c' || i, 'q', 'discarded', now() - interval '30.5 minutes', now() - interval '10.5 minutes' from generate_series(1, 7) i
		union all
		select 'd' || i, 'q', 'retried', now() - interval '20.5 minutes', now() - interval '20.5 minutes' from generate_series(1, 9) i
		union all
		select 'e' || i, 'q', 'discarded', now() - interval '3 hours', now() - interval '2 hours' from generate_series(1, 11) i`)
	p, err := b.Past(testkit.Context(t))
	require.NoError(t, err)
	waited := map[int]float64{}
	for _, ago := range []int{59, 41, 40, 31, 30, 20, 11, 10, 0} {
		waited[ago] = p.Minutes[59-ago].Waiting
	}
	require.Equal(t, map[int]float64{59: 7, 41: 7, 40: 2, 31: 2, 30: 9, 20: 9, 11: 9, 10: 2, 0: 2}, waited)
}

// TestMoreThanCanBeReadIsEstimated: within some per cent, at a bounded cost.
func TestMoreThanCanBeReadIsEstimated(t *testing.T) {
	t.Parallel()
	b := setup(t, fakeBroker{})
	action := testkit.Action(t, b.Store, "demo.echo")
	b.Ended(t, action, 40_000, "completed", 59)
	p, err := b.Past(testkit.Context(t))
	require.NoError(t, err)
	require.True(t, p.Estimated)
	done, _, _ := total(p)
	require.InEpsilon(t, 40_000, done, 0.05)
	require.InEpsilon(t, 678, p.Minutes[30].Done, 0.35)
}

// TestThePastOfASourceThatIsAwayIsUnknown.
func TestThePastOfASourceThatIsAwayIsUnknown(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	p, err := New(Config{}, Deps{Broker: fakeBroker{}}).Past(ctx)
	require.NoError(t, err)
	require.Empty(t, p.Minutes)
	require.Len(t, p.Depth, 1)
	require.Equal(t, time.Unix(1, 0), p.Depth[0].At)
	_, err = New(Config{}, Deps{Broker: fakeBroker{err: errors.New("refused")}}).Past(ctx)
	require.ErrorContains(t, err, "refused")
}
