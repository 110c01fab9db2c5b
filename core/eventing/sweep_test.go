package eventing_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/eventing"
	"github.com/attune-go/attune/lab/testkit"
)

// finds records the finds of sweeps.
type finds struct {
	mu                   sync.Mutex
	events, enforcements []int64 // guarded by mu
}

func (k *finds) record(list *[]int64) eventing.Submit {
	return func(_ context.Context, ids []int64) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		*list = append(*list, ids...)
		return nil
	}
}

func (k *finds) all() (events, enforcements []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slices.Sort(k.events)
	slices.Sort(k.enforcements)
	return slices.Compact(slices.Clone(k.events)), slices.Compact(slices.Clone(k.enforcements))
}

// sweep starts a sweep with a short interval.
func (b *bundle) sweep(k *finds) *eventing.Sweep {
	b.t.Helper()
	cfg := eventing.SweepConfig{Interval: 20 * time.Millisecond}
	s := eventing.NewSweep(cfg, b.store, k.record(&k.events), k.record(&k.enforcements), testkit.Logger(b.t),
		eventing.NewMetrics(b.registryOf()), nil)
	require.NoError(b.t, s.Start(testkit.Context(b.t)))
	b.t.Cleanup(s.Stop)
	return s
}

// aged makes an event that is older than its message may be under way.
func (b *bundle) aged(age time.Duration) int64 {
	b.t.Helper()
	id := b.event(`{}`)
	b.age(`event`, id, age)
	return id
}

func (b *bundle) age(table string, id int64, age time.Duration) {
	b.t.Helper()
	if table == "event" { // a hypertable refuses an UPDATE that moves a row to another chunk
		testkit.Exec(b.t, b.store, `with gone as (delete from event where id = $1 returning *)
			insert into event select (jsonb_populate_record(null::event,
				to_jsonb(gone) || jsonb_build_object('created', now() - make_interval(secs => $2)))).* from gone`,
			id, age.Seconds())
		return
	}
	testkit.Exec(b.t, b.store, fmt.Sprintf(`update %s set created = now() - make_interval(secs => $2) where id = $1`,
		table), id, age.Seconds())
}

// L1: events and enforcements whose message was lost are found. Matched, young and old ones are not.
func TestEventsWithLostMessagesAreFound(t *testing.T) {
	b := setup(t)
	b.rule("demo.one", `[]`, `{}`)
	testkit.Exec(t, b.store, `update event_matching set since = now() - interval '3 days'`)
	lost, late := b.aged(time.Minute), b.aged(20*time.Hour)
	b.aged(25 * time.Hour)       // too late for anything to come of it
	b.aged(4 * 24 * time.Hour)   // before rules were matched
	b.event(`{}`)                // its message is under way
	matched := b.aged(time.Hour) // done
	b.match(matched)
	open := b.id(`select id from enforcement`)
	b.age("enforcement", open, time.Minute)
	fresh := b.event(`{}`)
	b.match(fresh)

	k := &finds{}
	b.sweep(k)
	testkit.Eventually(t, func() bool {
		events, enforcements := k.all()
		return len(events) >= 2 && len(enforcements) >= 1
	}, 10*time.Second)
	events, enforcements := k.all()
	require.Equal(t, []int64{lost, late}, events)
	require.Equal(t, []int64{open}, enforcements)

	// An event that is lost later is found too, also before matched ones.
	b.match(lost, late)
	next := b.aged(40 * time.Second)
	testkit.Eventually(t, func() bool { events, _ := k.all(); return slices.Contains(events, next) }, 10*time.Second)
}

// An event is found again until it is matched.
func TestEventsAreFoundUntilTheyAreMatched(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `update event_matching set since = now() - interval '3 days'`)
	lost := b.aged(time.Hour)
	b.aged(time.Minute)
	k := &finds{}
	b.sweep(k)
	times := func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		n := 0
		for _, id := range k.events {
			if id == lost {
				n++
			}
		}
		return n
	}
	testkit.Eventually(t, func() bool { return times() > 2 }, 10*time.Second)
	b.match(lost)
	testkit.Eventually(t,
		func() bool { before := times(); time.Sleep(100 * time.Millisecond); return times() == before }, 10*time.Second)
}

// One replica sweeps at a time.
func TestOneReplicaSweepsAtATime(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `update event_matching set since = now() - interval '3 days'`)
	b.aged(time.Minute)
	tx := testkit.Begin(t, b.store)
	_, err := tx.Exec(testkit.Context(t),
		`select pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.attune.events', 0))`)
	require.NoError(t, err)
	k := &finds{}
	s := b.sweep(k)
	testkit.Eventually(t, func() bool { return !s.LastTick().IsZero() }, 10*time.Second)
	events, _ := k.all()
	require.Empty(t, events)
	require.NoError(t, tx.Rollback(testkit.Context(t)))
	testkit.Eventually(t, func() bool { events, _ := k.all(); return len(events) == 1 }, 10*time.Second)
}

// Marks are deleted when they are not needed any more, and the event does not fire again.
func TestMarksArePruned(t *testing.T) {
	b := setup(t)
	old, young := b.event(`{}`), b.event(`{}`)
	b.match(old, young)
	testkit.Exec(t, b.store, `update event_matched set at = now() - interval '8 days' where event = $1`, old)
	b.age("event", old, 8*24*time.Hour)
	b.sweep(&finds{})
	testkit.Eventually(t, func() bool { return testkit.Count(t, b.store, `select count(*) from event_matched`) == 1 },
		10*time.Second)
	require.Equal(t, young, b.id(`select event from event_matched`))
}

// Of events from before the first match only those are found that had a rule, which has not changed since, and got
// no enforcement. Later rules do not fire for them.
func TestUnmatchedEventsOfAnotherEngineAreFound(t *testing.T) {
	b := setup(t)
	testkit.Exec(t, b.store, `update event_matching set since = now()`)
	old, changed := b.rule("demo.old", `[]`, `{}`), b.rule("demo.changed", `[]`, `{}`)
	testkit.Exec(t, b.store, `alter table rule disable trigger user`)
	testkit.Exec(t, b.store,
		`update rule set created = now() - interval '10 hours', updated = now() - interval '10 hours'`)
	testkit.Exec(t, b.store, `update rule set updated = now() - interval '2 hours' where id = $1`, changed)
	testkit.Exec(t, b.store, `alter table rule enable trigger user`)
	b.rule("demo.new", `[]`, `{}`)
	b.trigger("demo.window")
	lost := b.aged(time.Hour)
	b.aged(11 * time.Hour) // no rule was there
	b.aged(3 * time.Hour)  // a rule has changed since
	had := b.aged(time.Hour)
	testkit.Exec(t, b.store, `insert into enforcement (rule, rule_ref, trigger_ref, payload, event, status, config)
		values ($1, 'demo.old', 'demo.door', '{}', $2, 'processed', '{}')`, old, had)
	other := b.aged(time.Hour) // of a trigger without rules
	testkit.Exec(t, b.store, `update event set trigger_ref = 'demo.window' where id = $1`, other)

	k := &finds{}
	b.sweep(k)
	testkit.Eventually(t, func() bool { events, _ := k.all(); return len(events) > 0 }, 10*time.Second)
	events, _ := k.all()
	require.Equal(t, []int64{lost}, events)
	require.Equal(t, 2, b.match(lost).Created, "not of the new rule")
}
