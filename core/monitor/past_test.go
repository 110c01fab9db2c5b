package monitor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// minute is the running minute of the database.
func (b *testBundle) minute(t *testing.T) (begun time.Time) {
	t.Helper()
	require.NoError(t, b.Store.Pool().QueryRow(t.Context(), `select date_trunc('minute', now())`).Scan(&begun))
	return begun
}

// recorded writes what an engine recorded of the minute that began at a time.
func (b *testBundle) recorded(t *testing.T, begun time.Time, queues, slots, ended string) {
	t.Helper()
	testkit.Exec(t, b.Store, `insert into activity_minute (minute, action_ref, queues, slots, ended)
		values ($1, '', nullif($2, '')::jsonb, nullif($3, '')::jsonb, nullif($4, '')::jsonb)`, begun, queues, slots, ended)
}

// A minute that no engine counted, or whose end none saw, is unknown and not empty.
func TestTheLastHourIsWhatEnginesRecorded(t *testing.T) {
	b := setup(t, fakeBroker{})
	now := b.minute(t)
	for ago := 3; ago <= 70; ago++ {
		if ago != 10 {
			seen := "{}"
			if ago == 20 {
				seen = ""
			}
			b.recorded(t, now.Add(-time.Duration(ago)*time.Minute), seen, "{}", "")
		}
		testkit.Exec(t, b.Store, `insert into activity_minute (minute, action_ref, completed, failed, timeout, cancelled, abandoned, queued, running)
			select $1::timestamptz, ref, 32, 16, 8, 4, 2, n, 1 from (values ('a', 5), ('b', 7)) x (ref, n)
			where $2::int not in (10, 20)`, now.Add(-time.Duration(ago)*time.Minute), ago)
	}
	p, err := b.Past(testkit.Context(t))
	require.NoError(t, err)
	require.Len(t, p.Minutes, 60)
	require.Len(t, p.Depth, 1, "the broker's own record of the dead-letter queue")
	require.True(t, p.DeadLetters)
	for _, m := range p.Minutes {
		want := PastMinute{At: m.At, Done: 124, Failed: 52, Queued: 12, Running: 2}
		switch ago := 1 + now.Sub(m.At)/time.Minute; {
		case ago == 20:
			want = PastMinute{At: m.At, Unseen: true}
		case ago == 10 || ago < 3:
			want = PastMinute{At: m.At, Unseen: true, Uncounted: true}
		}
		require.Equal(t, want, m)
	}
}

// A queue that was not among the recorded ones was empty, unless others had to be left out.
func TestTheLastHourOfQueuesAndWorkers(t *testing.T) {
	b := setup(t, nil)
	state := testkit.State(t, b.Store, testkit.Action(t, b.Store, "demo.sleep"), 1)
	now := b.minute(t)
	b.recorded(t, now.Add(-5*time.Minute), fmt.Sprintf(`{"%d": [40, 90], "777": [5, 1]}`, state.ID), `{"7": 3}`, `{"7": 60, "8": 1}`)
	b.recorded(t, now.Add(-4*time.Minute), `{}`, `{}`, ``)
	b.recorded(t, now.Add(-3*time.Minute), `{"777": [5, 1], "more": true}`, `{"7": 2}`, `{"7": 6}`)
	b.recorded(t, now.Add(-2*time.Minute), ``, ``, `{"7": 9}`)
	for _, id := range []int64{state.ID, 0} {
		p, err := b.QueuesPast(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, p.List, 1)
		require.Equal(t, state.ID, p.List[0].ID)
		require.Len(t, p.List[0].Minutes, 60)
		for _, m := range p.List[0].Minutes {
			want := QueueMinute{At: m.At, Unseen: true}
			switch 1 + now.Sub(m.At)/time.Minute {
			case 5:
				want = QueueMinute{At: m.At, Depth: 40, Head: 90 * time.Second}
			case 4:
				want = QueueMinute{At: m.At}
			}
			require.Equal(t, want, m)
		}
	}
	p, err := b.WorkersPast(t.Context())
	require.NoError(t, err)
	require.Len(t, p.List, 2)
	w := p.Of(7)
	for _, m := range w.Minutes {
		want := WorkerMinute{At: m.At, Unseen: true}
		switch 1 + now.Sub(m.At)/time.Minute {
		case 5:
			want = WorkerMinute{At: m.At, Slots: 3, Ended: 60}
		case 4:
			want = WorkerMinute{At: m.At}
		case 3:
			want = WorkerMinute{At: m.At, Slots: 2, Ended: 6}
		}
		require.Equal(t, want, m)
	}
	require.InDelta(t, 66.0/60, w.PerMinute(60), 1e-9)
	require.Nil(t, p.Of(9))
	require.Nil(t, (*WorkersPast)(nil).Of(7))
}

// The past counts the waiting dead letters at the end of each minute, also ones from before the hour.
func TestThePastCountsWaitingDeadLetters(t *testing.T) {
	b := setup(t, fakeBroker{})
	now := b.minute(t)
	testkit.Exec(t, b.Store, `insert into dead_letter (fingerprint, queue, decision, created, decided_at)
		select 'a' || i, 'q', null, $1::timestamptz - interval '3 hours', null::timestamptz from generate_series(1, 2) i
		union all
		select 'b' || i, 'q', 'requeued', $1::timestamptz - interval '90 minutes', $1::timestamptz - interval '40.5 minutes' from generate_series(1, 5) i
		union all
		select 'c' || i, 'q', 'discarded', $1::timestamptz - interval '30.5 minutes', $1::timestamptz - interval '10.5 minutes' from generate_series(1, 7) i
		union all
		select 'd' || i, 'q', 'retried', $1::timestamptz - interval '20.5 minutes', $1::timestamptz - interval '20.5 minutes' from generate_series(1, 9) i
		union all
		select 'e' || i, 'q', 'discarded', $1::timestamptz - interval '3 hours', $1::timestamptz - interval '2 hours' from generate_series(1, 11) i`, now)
	p, err := b.Past(testkit.Context(t))
	require.NoError(t, err)
	waited := map[int]float64{}
	for _, m := range p.Minutes {
		waited[int(now.Sub(m.At)/time.Minute)] = m.Waiting
	}
	for ago, n := range map[int]float64{58: 7, 41: 7, 40: 2, 31: 2, 30: 9, 20: 9, 11: 9, 10: 2, 1: 2} {
		require.InDelta(t, n, waited[ago], 0, "%d minutes ago", ago)
	}
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
