package alerting_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// clock makes now() the setting test.now for transactions that ask for it.
const clock = `create function now() returns timestamptz language sql stable as $$ select current_setting('test.now')::timestamptz $$`

// recordAt records the activity as at another time of the database.
func (b *bundle) recordAt(at time.Time) {
	b.t.Helper()
	require.NoError(b.t, b.store.Tx(b.t.Context(), "another time", func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('test.now', $1, true),
			set_config('search_path', current_setting('search_path') || ', pg_catalog', true)`, at.Format(time.RFC3339Nano))
		require.NoError(b.t, err)
		require.NoError(b.t, tx.CountActivity(ctx, 5))
		_, err = tx.RecordDepths(ctx, monitor.MinuteSettled.Seconds(), 500)
		return err
	}))
}

// TestTheLastHourIsWhatTheRowsSay: an hour of a queue with two slots, with a burst, a backlog, a stall, ids against the
// order of time, an end that is committed late, and minutes without an engine.
func TestTheLastHourIsWhatTheRowsSay(t *testing.T) {
	b := setup(t, shortened())
	b.exec(clock)
	action := testkit.Action(t, b.store, "shop.slow")
	worker := testkit.Worker(t, b.store, "w")
	state := testkit.State(t, b.store, action, 2)
	b.exec(`alter table execution disable trigger user`)
	b.exec(`alter table execution_admission_entry disable trigger all`)
	b.exec(`create table turn (seat bigint primary key, id bigint, created timestamptz)`)
	var last time.Time
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), `select date_trunc('minute', now())`).Scan(&last))

	request := func(end time.Time, n int) { // the later, the smaller the id
		b.exec(`with new as (
				insert into execution (id, action, action_ref, status, created, updated)
				select 1000000 - s.n, $1, $2, 'requested', $3::timestamptz - make_interval(secs => 60.0 * (1 - k::float8 / ($4::int + 1))), now()
				from (select count(*) from turn) t (n), generate_series(1, $4::int) k, lateral (select t.n + k) s (n)
				returning id, created
			), placed as (
				insert into execution_admission_entry (state_id, execution_id, status, queue_order, enqueued_at)
				select $5, id, 'queued', 1000000 - id, created from new)
			insert into turn select 1000000 - id, id, created from new`, action.ID, action.Ref, end, n, state.ID)
	}
	head := 1
	pass := func(end time.Time, n int, status string) { // each took a second, and ended in this minute
		b.exec(`with gone as (
				delete from execution_admission_entry q using turn t
				where t.seat >= $1::int and t.seat < $1::int + $2::int and q.execution_id = t.id returning q.queue_order, q.execution_id)
			update execution e set status = $4::text::execution_status_enum, worker = $5,
				admitted_at = x.at - interval '1 second', started_at = x.at - interval '1 second', finished_at = x.at
			from gone g, lateral (select $3::timestamptz - make_interval(secs => 58.0 * (1 - (g.queue_order - $1 + 1)::float8 / ($2 + 1)))) x (at)
			where e.id = g.execution_id`, head, n, end, status, worker.ID)
		head += n
	}
	for m := range 60 {
		end := last.Add(time.Duration(m-59) * time.Minute)
		switch {
		case m == 5:
			request(end, 20_000)
		case m == 50:
			request(end, 2_000)
		default:
			request(end, 10)
		}
		switch {
		case m > 30 && m < 36: // a stall
		case m == 40:
			pass(end, 1_500, "timeout")
		case m > 5:
			pass(end, 58+m%7, "completed")
		}
		waiting := testkit.Count(t, b.store, `select count(*) from execution_admission_entry`)
		b.exec(`update execution_admission_state set queued_count = $1, head_order = $2, active_count = $3`, waiting, head, m%3)
		b.exec(`update worker_load set assigned = $1`, m%3)
		if m >= 20 && m < 23 { // no engine lives
			continue
		}
		b.recordAt(end.Add(50 * time.Millisecond))
		if m == 55 { // commits late
			pass(end, 3, "completed")
		}
		late := []time.Duration{40 * time.Second}
		if m%6 == 1 { // another replica
			late = []time.Duration{time.Second, 20 * time.Second, 40 * time.Second}
		}
		for _, late := range late {
			b.exec(`update execution_admission_state set queued_count = queued_count + 1`) // nothing is recorded again
			b.recordAt(end.Add(late))
		}
	}

	past, err := b.view.Past(t.Context())
	require.NoError(t, err)
	queues, err := b.view.QueuesPast(t.Context(), state.ID)
	require.NoError(t, err)
	workers, err := b.view.WorkersPast(t.Context())
	require.NoError(t, err)
	require.Len(t, past.Minutes, 60)
	require.Len(t, workers.List, 1)
	compared := 0
	for i, minute := range past.Minutes {
		m := 59 + int(minute.At.Sub(last)/time.Minute)
		if m < 0 || m > 59 { // the test took longer than the rest of a minute
			continue
		}
		compared++
		var want monitor.PastMinute
		var queued int
		var waited float64
		require.NoError(t, b.store.Pool().QueryRow(t.Context(), `select
			count(*) filter (where e.finished_at >= $1::timestamptz - interval '1 minute' and e.finished_at < $1),
			count(*) filter (where e.finished_at >= $1::timestamptz - interval '1 minute' and e.finished_at < $1 and e.status = 'timeout'),
			count(*) filter (where e.created < $1 and coalesce(e.admitted_at >= $1, true)),
			coalesce(extract(epoch from $1 - min(e.created) filter (where e.created < $1 and coalesce(e.admitted_at >= $1, true))), 0)
			from execution e`, minute.At).Scan(&want.Done, &want.Failed, &queued, &waited))
		want.At, want.Unseen = minute.At, m >= 20 && m < 23
		if m == 55 {
			queued += 3 // the commit came after the depth was recorded
		}
		if !want.Unseen {
			want.Queued, want.Running = float64(queued), float64(m%3)
		}
		require.Equal(t, want, minute, "minute %d", m)
		q := queues.List[0].Minutes[i]
		require.Equal(t, want.Unseen, q.Unseen)
		require.InDelta(t, want.Queued, q.Depth, 0)
		if !want.Unseen && m != 55 {
			require.InDelta(t, waited, q.Head.Seconds(), 1, "minute %d", m)
		}
		w := workers.List[0].Minutes[i]
		require.Equal(t, want.Unseen, w.Unseen)
		if !want.Unseen {
			require.InDelta(t, want.Done, w.Ended, 0, "minute %d", m)
			require.InDelta(t, want.Running, w.Slots, 0)
		}
	}
	require.GreaterOrEqual(t, compared, 57)
}

// TestDepthsAreNotRecordedLate: nothing tells afterwards what waited, so that the minute stays unknown.
func TestDepthsAreNotRecordedLate(t *testing.T) {
	b := setup(t, shortened())
	b.exec(clock)
	var last time.Time
	require.NoError(t, b.store.Pool().QueryRow(t.Context(), `select date_trunc('minute', now())`).Scan(&last))
	testkit.State(t, b.store, testkit.Action(t, b.store, "shop.slow"), 2, func(r *testkit.StateRow) { r.Active = 2 })
	b.recordAt(last.Add(-2*time.Minute + 16*time.Second))
	b.recordAt(last.Add(-time.Minute + 14*time.Second))
	past, err := b.view.Past(t.Context())
	require.NoError(t, err)
	for _, minute := range past.Minutes {
		switch {
		case minute.At.Equal(last.Add(-time.Minute)):
			require.False(t, minute.Unseen)
			require.InDelta(t, 2, minute.Running, 0)
		default:
			require.True(t, minute.Unseen)
			uncounted := minute.At.Before(last.Add(-16*time.Minute)) || minute.At.After(last)
			require.Equal(t, uncounted, minute.Uncounted, minute.At)
		}
	}
}
