package proof

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/lab/testkit"
)

// dyingReplica starts a replica that dies at the point, at one of the first times that it reaches it.
func (s *stage) dyingReplica(dice *rand.Rand, point string) *process {
	nth := 1 + dice.IntN(4)
	s.t.Logf("a replica dies at %s, reach %d", point, nth)
	return s.serve(dieAt(point, nth))
}

// F1 and F16: a replica dies at each point between two effects, under load. Another one finds everything in the
// database and the broker: every request runs once and is reported as completed, and every slot is released (S1,
// S2, S6, S7, S13, S14; L2, L3, L5).
func TestAReplicaThatDiesAtAnyPointIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	for _, course := range testkit.Courses(crashpoint.Engine()) {
		t.Run(strings.Join(course, ","), func(t *testing.T) {
			t.Parallel()
			s, dice := newStage(t), testkit.Dice(t)
			s.worker("w1")
			s.worker("w2")
			var ids []int64
			for _, point := range course {
				victim := s.dyingReplica(dice, point)
				ids = append(ids, s.load(victim.killed)...)
				s.age()
			}
			next := s.serve()
			s.over()
			s.requireOnce(ids)
			require.Zero(t, next.stop(t))
		})
	}
}

// The same for two replicas that work at the same time and die at two points; a third one finishes.
func TestTwoReplicasThatDieAreFollowedByAThird(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill two replicas; another test kills one")
	for _, pair := range testkit.Some(t, pairs(crashpoint.Engine()), 1) {
		t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
			t.Parallel()
			s, dice := newStage(t), testkit.Dice(t)
			s.worker("w1")
			s.worker("w2")
			first, second := s.dyingReplica(dice, pair[0]), s.dyingReplica(dice, pair[1])
			ids := s.load(func() bool { return first.killed() && second.killed() })
			s.age()
			third := s.serve()
			s.over()
			s.requireOnce(ids)
			require.Zero(t, third.stop(t))
		})
	}
}

// pairs are all pairs of points, including each with itself.
func pairs(points []string) (all [][2]string) {
	for i, first := range points {
		for _, second := range points[i:] {
			all = append(all, [2]string{first, second})
		}
	}
	return all
}

// F2, at the worst points: a replica freezes with the queues locked, with everything decided, or with everything
// done and unpublished, for longer than the database and the broker wait for it. Another one takes over, at the
// latest when the database has ended the transaction. When the first one continues, nothing that it still does
// counts twice.
func TestAFrozenReplicaIsReplacedAndDoesNoHarmLater(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "freeze a replica; another test kills one")
	for _, point := range testkit.Some(t, crashpoint.Engine(), 1) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.worker("w1")
			s.worker("w2")
			const impatient = "ATTUNE__MESSAGE_QUEUE__RABBITMQ__HEARTBEAT_SECS=1"
			frozen := s.serve(freezeAt(point, 3), impatient)
			ids := s.load(func() bool { return frozen.stopped(t) })
			s.age()
			next := s.serve(impatient)
			s.over()
			require.NoError(t, frozen.cmd.Process.Signal(syscall.SIGCONT))
			frozen.says(t, "Queue is not being consumed")
			ids = append(ids, s.load(func() bool { return true })...)
			s.over()
			s.requireOnce(ids)
			require.Zero(t, next.stop(t))
			require.Zero(t, frozen.stop(t))
		})
	}
}
