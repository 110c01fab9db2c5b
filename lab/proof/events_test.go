package proof

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/testkit"
)

// gateRules are the rules of these tests' trigger: two run actions, and one cannot be carried out.
const gateRules = 3

// gates makes the trigger and its rules.
func (s *stage) gates() {
	s.t.Helper()
	testkit.Exec(s.t, s.store, `INSERT INTO trigger (ref, label) VALUES ('stage.gate', 'x')`)
	testkit.Exec(s.t, s.store, `INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, conditions, action_params, enabled)
		SELECT r.ref, a.pack, a.pack_ref, 'x', a.id, a.ref, t.id, t.ref, r.conditions::jsonb, r.params::jsonb, true
		FROM trigger t, (VALUES ('stage.one', $1, '[]', '{"number":"{{ event.payload.number }}"}'),
			('stage.two', $2, '{"expression":"event.payload.number >= 0"}', '{"number":"{{ event.id }}"}'),
			('stage.broken', $1, '[]', '{"number":"{{ open"}')) r (ref, action, conditions, params)
		JOIN action a ON a.ref = r.action
		WHERE t.ref = 'stage.gate'`, actFree, actLimited)
}

// emitGates emits a few events every 20 ms until enough returns true, and returns their number.
func (s *stage) emitGates(enough func() bool) (n int) {
	s.t.Helper()
	deadline := time.Now().Add(testkit.TestTimeout)
	for n < 30 || !enough() {
		require.True(s.t, time.Now().Before(deadline), "the condition of the load is not met")
		events := make([]submit.Event, 3)
		for i := range events {
			events[i] = submit.Event{TriggerRef: "stage.gate", Payload: fmt.Appendf(nil, `{"number":%d}`, n+i)}
		}
		_, err := s.submitter.EmitEvents(testkit.Context(s.t), events)
		require.NoError(s.t, err)
		n += len(events)
		time.Sleep(20 * time.Millisecond)
	}
	return n
}

// requireGates checks that every event met its rules once: one enforcement for each rule, and one execution, which
// ran once, for each enforcement that can be carried out (S10, S13, L1).
func (s *stage) requireGates(events int) {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool {
		return s.count(`SELECT count(*) FROM event_matched`) == events &&
			s.count(`SELECT count(*) FROM enforcement WHERE status = 'created'`) == 0
	}, testkit.TestTimeout, "L1: every event is matched and every enforcement taken up")
	s.over()
	require.Equal(s.t, gateRules*events, s.count(`SELECT count(DISTINCT (rule, event)) FROM enforcement`))
	require.Equal(s.t, gateRules*events, s.count(`SELECT count(*) FROM enforcement`))
	require.Equal(s.t, events, s.count(`SELECT count(*) FROM enforcement WHERE status = 'disabled' AND rule_ref = 'stage.broken' AND error LIKE '%not closed%'`))
	require.Equal(s.t, 2*events, s.count(`SELECT count(*) FROM execution WHERE status = 'completed'`))
	require.Equal(s.t, 2*events, s.count(`SELECT count(DISTINCT enforcement) FROM execution`))
	require.Equal(s.t, 2*events, s.count(`SELECT count(*) FROM execution`))
	s.requireStarted(s.ids(`SELECT id FROM execution`))
	require.Zero(s.t, s.count(`SELECT count(*) FROM dead_letter`), "nothing is given up")
}

// F1, F16: a replica dies at each point between an event and its executions. Another one continues from the
// database and the broker.
func TestEventsSurviveAReplicaThatDiesAtAnyPoint(t *testing.T) {
	t.Parallel()
	points := crashpoint.Events()
	if testkit.Slow() { // in the fast tests another test covers the points of executions
		points = append(points, crashpoint.Engine()...)
	}
	for _, course := range testkit.Courses(points) {
		t.Run(strings.Join(course, ","), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.gates()
			s.worker("w1")
			events := 0
			for i, point := range course {
				events += s.emitGates(s.serve(dieAt(point, 1+i%3)).killed)
				s.age()
			}
			next := s.serve()
			s.requireGates(events)
			require.Zero(t, next.stop(t))
		})
	}
}

// F14, F15: two replicas get every message about events and enforcements twice more, newest first, while they work
// and after the end.
func TestEventsThatComeAgainInAnyOrderRunNothingTwice(t *testing.T) {
	s := newStage(t)
	s.gates()
	s.worker("w1")
	first, second := s.serve(), s.serve()
	events := s.emitGates(func() bool { return true })
	require.NotZero(t, s.replay())
	s.requireGates(events)
	require.Equal(t, 2*(events+gateRules*events), s.replay())
	testkit.Eventually(t, func() bool { return s.ready(message.QueueEvents)+s.ready(message.QueueEnforcements) == 0 },
		testkit.TestTimeout)
	s.requireGates(events)
	require.Zero(t, first.stop(t))
	require.Zero(t, second.stop(t))
}

// replay publishes two more messages about each event and enforcement, the newest first, and returns their number.
func (s *stage) replay() int {
	s.t.Helper()
	var all []broker.Message
	add := func(sql, exchange, key, kind string, payload func(id int64) any) {
		for _, id := range s.ids(sql) {
			body, err := message.New(kind, payload(id), time.Now(), "again").Encode()
			require.NoError(s.t, err)
			for range 2 {
				all = append(all,
					broker.Message{ID: uuid.NewString(), Exchange: exchange, RoutingKey: key, Type: kind, Body: body})
			}
		}
	}
	add(`SELECT id FROM enforcement ORDER BY id DESC`, message.ExchangeExecutions, message.KeyEnforcementCreated,
		message.TypeEnforcementCreated,
		func(id int64) any {
			return message.EnforcementCreated{EnforcementID: id, RuleRef: "stage.one", TriggerRef: "stage.gate"}
		})
	add(`SELECT id FROM event ORDER BY id DESC`, message.ExchangeEvents, message.KeyEventCreated,
		message.TypeEventCreated,
		func(id int64) any { return message.EventCreated{EventID: id, TriggerRef: "stage.gate"} })
	for _, outcome := range s.wire.Publisher().Publish(testkit.Context(s.t), all) {
		require.NoError(s.t, outcome.Err)
	}
	return len(all)
}

func (s *stage) ready(queue string) int {
	s.t.Helper()
	state, err := s.wire.QueueState(testkit.Context(s.t), queue)
	require.NoError(s.t, err)
	return state.Ready
}
