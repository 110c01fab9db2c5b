package monitor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func name(id int64) string { return strconv.FormatInt(id, 10) }

// A worker that is back soon after it was lost has flapped.
func TestAWorkerHasItsExecutionsAndChanges(t *testing.T) {
	b := setup(t, nil)
	action := testkit.Action(t, b.Store, "demo.sleep")
	worker, other := testkit.Worker(t, b.Store, "w"), testkit.Worker(t, b.Store, "other")
	_, holders, _ := b.AddQueue(t, action, 2, 2, 1, worker.ID)
	b.Load(t, worker.ID, 3) // one more than there are, so both ends are read
	testkit.Execution(t, b.Store, action,
		func(r *testkit.ExecutionRow) { r.Status, r.Worker = lifecycle.StatusRunning, &other.ID })
	testkit.Exec(t, b.Store, `delete from worker_history`)
	testkit.Exec(t, b.Store, `update worker set created = now() - interval '6 hours' where id = $1`, worker.ID)
	change := func(ago time.Duration, field, was, is string) {
		testkit.Exec(t, b.Store, `insert into worker_history (time, operation, entity_id, changed_fields, old_values, new_values)
			values (now() - make_interval(secs => $2), 'UPDATE', $1, array[$3::text], jsonb_build_object($3::text, $4::text), jsonb_build_object($3::text, $5::text))`,
			worker.ID, ago.Seconds(), field, was, is)
	}
	testkit.Exec(t, b.Store, `insert into worker_history (time, operation, entity_id, changed_fields, new_values)
		values (now() - interval '6 hours', 'INSERT', $1, '{name,status}', '{"status": "inactive"}')`, worker.ID)
	change(6*time.Hour-time.Second, "status", "inactive", "active") // as workers begin: that is no flap
	change(5*time.Hour, "status", "active", "inactive")
	change(4*time.Hour, "status", "inactive", "active")
	change(40*time.Minute, "status", "active", "inactive")
	change(35*time.Minute-30*time.Second, "status", "inactive", "active")
	change(20*time.Minute, "cordoned", "false", "true")
	change(19*time.Minute, "capabilities", "{}", "{}")

	d, err := b.Worker(t.Context(), worker.ID)
	require.NoError(t, err)
	require.True(t, d.Exists)
	require.True(t, d.Recorded)
	require.Equal(t, []int64{d.Running[0].ID, d.Running[1].ID}, holders, "the oldest first, and none of another")
	require.Equal(t, "demo.sleep", d.Running[0].Queue)
	var what []string
	for _, c := range d.Changes {
		what = append(what, c.What)
	}
	require.Equal(t, []string{"cordoned", "active", "inactive", "active", "inactive", "active", "registered"}, what)
	require.True(t, d.Changes[1].Flap)
	require.False(t, d.Changes[3].Flap, "it was away for an hour")
	require.EqualValues(t, 1, d.Flaps)
	require.Len(t, d.Beats, 60)
	require.Equal(t, BeatAlive, d.Beats[18])
	require.Equal(t, BeatSilent, d.Beats[22])
	require.Equal(t, BeatAlive, d.Beats[26])
	require.Equal(t, BeatAlive, d.Beats[59])

	testkit.Exec(t, b.Store, `update worker set last_heartbeat = now() - interval '270 seconds', heartbeat_seen = now() - interval '270 seconds' where id = $1`, worker.ID)
	d, err = b.Worker(t.Context(), worker.ID)
	require.NoError(t, err)
	require.Equal(t, []Beat{BeatAlive, BeatSilent, BeatSilent, BeatSilent, BeatSilent}, d.Beats[55:])
	d, err = b.Worker(t.Context(), worker.ID+100)
	require.NoError(t, err)
	require.False(t, d.Exists)
	require.Empty(t, d.Beats)
}

func TestBeatsFollowTheRecord(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	worker := store.ViewWorkerFactsRow{
		Created: at.Add(-30 * time.Minute), Status: "inactive",
		LastHeartbeat: new(at.Add(-time.Second)), Recorded: true,
	}
	changes := []WorkerChange{
		{At: at.Add(-10 * time.Minute), status: "inactive", was: "active"},
		{At: at.Add(-15 * time.Minute)}, // something else
		{At: at.Add(-30 * time.Minute), status: "active"},
	}
	got := beats(worker, changes, at)
	require.Equal(t, BeatAbsent, got[0])
	require.Equal(t, BeatAlive, got[31])
	require.Equal(t, BeatAlive, got[48])
	require.Equal(t, BeatSilent, got[51])
	require.Equal(t, BeatSilent, got[59])
	require.Equal(t, BeatSilent, beats(worker, nil, at)[59], "as its row says, where nothing changed")
}

func TestSinceWhenAWorkerIsThere(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Unix(int64(minute)*60, 0) }
	d := &WorkerDetail{Changes: []WorkerChange{
		{At: at(9), What: "cordoned"},
		{At: at(8), What: "busy", status: "busy", was: "active"},
		{At: at(7), What: "active", status: "active", was: "inactive"},
		{At: at(5), What: "inactive", status: "inactive", was: "active"},
	}}
	require.Equal(t, at(7), d.UpSince(), "a cordon and being busy are no breaks")
	d.Changes = d.Changes[:2]
	require.Zero(t, d.UpSince(), "for longer than the changes tell")
	d.Changes = []WorkerChange{{At: at(3), What: "registered", status: "active"}}
	require.Equal(t, at(3), d.UpSince())
	beat := at(10)
	require.EqualValues(t, 8, Worker{Heartbeat: &beat}.Missed(at(10).Add(251*time.Second), 30*time.Second))
	require.Zero(t, Worker{}.Missed(at(10), 30*time.Second))
}

// The list counts the processes that lately took the name of a worker, and what was abandoned.
func TestRestartsOfAWorkerAreCounted(t *testing.T) {
	b := setup(t, nil)
	shaky, calm := testkit.Worker(t, b.Store, "shaky"), testkit.Worker(t, b.Store, "calm")
	for range 5 {
		testkit.Exec(t, b.Store, `UPDATE worker SET capabilities = coalesce(capabilities, '{}')
			|| jsonb_build_object('registered_at', extract(epoch FROM clock_timestamp())) WHERE id = $1`, shaky.ID)
		for _, status := range []string{"inactive", "active"} { // these are no restarts
			testkit.Exec(t, b.Store, `UPDATE worker SET status = $1::text::worker_status_enum`, status)
		}
	}
	testkit.Exec(t, b.Store, `UPDATE worker SET capabilities = coalesce(capabilities, '{}')
		|| jsonb_build_object('registered_at', extract(epoch FROM now())) WHERE id = $1`, calm.ID)
	action := testkit.Action(t, b.Store, "demo.lost")
	for i := range 8 {
		e := testkit.Execution(t, b.Store, action, func(r *testkit.ExecutionRow) {
			r.Status, r.Worker = lifecycle.StatusAbandoned, &shaky.ID
		})
		testkit.Exec(t, b.Store, `UPDATE execution SET finished_at = now() - make_interval(mins => $2) WHERE id = $1`,
			e.ID, 11*(i/7)) // the last one ended earlier
	}
	w, err := b.Workers(t.Context())
	require.NoError(t, err)
	got := map[string][2]int64{}
	for _, one := range w.List {
		got[one.Name] = [2]int64{one.Restarts, one.Abandoned}
	}
	require.Equal(t, map[string][2]int64{"shaky": {5, 7}, "calm": {1, 0}}, got)
}
