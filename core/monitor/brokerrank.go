package monitor

import (
	"cmp"
	"slices"

	"github.com/attune-go/attune/core/message"
)

// queueDown are the states of a broker queue in which it does not work.
var queueDown = []string{"down", "crashed", "stopped", "terminated", "minority", "nodeleader"}

// Down reports that the queue does not work.
func (q *BrokerQueue) Down() bool { return slices.Contains(queueDown, q.State) }

// Idle reports that nothing is in the queue and nobody waits for anything from it,
// which is how queues of packs and of services look that nobody uses.
func (q *BrokerQueue) Idle() bool {
	return !q.Uncounted && q.Ready == 0 && q.Unacked == 0 && q.Consumers == 0
}

// Unheard reports that what is in the queue is taken by nobody; with nothing in it,
// that it is one the engine always consumes.
func (q *BrokerQueue) Unheard() bool {
	if q.Uncounted || q.Consumers > 0 || q.Notices() {
		return false
	}
	return q.Ready > 0 || slices.Contains(alwaysConsumed, q.Name)
}

// Notices reports that the queue holds notices about packs for a worker, which reads them
// when it runs: nothing waits for that.
func (q *BrokerQueue) Notices() bool {
	worker, ok := message.WorkerOfQueue(q.Name)
	return ok && q.Name == message.WorkerPacksQueue(worker)
}

// alwaysConsumed are the queues that a running engine consumes.
var alwaysConsumed = []string{message.QueueExecutionRequests, message.QueueExecutionCompleted, message.QueueDeadLetter}

// pressing orders queues by how much they ask for somebody: what does not work, dead
// letters, what nobody takes, then what is at work, and last what is idle.
func (q *BrokerQueue) pressing() int {
	switch {
	case q.Down():
		return 0
	case q.Name == DeadLetterQueue && q.Ready > 0:
		return 1
	case q.Unheard():
		return 2
	case q.Ready > 0 && !q.Notices():
		return 3
	case q.Idle(), q.Notices():
		return 5
	default:
		return 4
	}
}

// ComparePressing orders the queue that asks for somebody the most first, and among
// equals the one that holds the most.
func ComparePressing(a, b *BrokerQueue) int {
	return cmp.Or(cmp.Compare(a.pressing(), b.pressing()), cmp.Compare(b.Ready+b.Unacked, a.Ready+a.Unacked))
}
