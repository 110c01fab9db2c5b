package engine

import (
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/scheduler"
)

// steps lists the processing steps of a message, in order. One batch takes everything that has
// arrived. Order matters: release slots, promote waiting executions, then admit new requests
// (FIFO).
//
//	step          trigger                 what it does
//	completion    execution.completed     releases the holder once; repeats if the policy allows
//	return        a deleted execution     releases what it held
//	reassign      a dead or late worker   finds another worker for unstarted executions
//	dead letter   a dead dispatch         finds another worker, or ends the execution
//	expiry        a queue timeout         removes the execution from its queue and ends it
//	fill          free slots              promotes waiting heads, in order
//	move          changed policy groups   moves waiting executions to the right queue
//	dispatch      execution.requested     claims; admits and dispatches, or queues
//	(a worker)    execution.dispatch.…    scheduled → running → terminal
//
// Starting workflows and ended children go to the batches of package advancement. Enforcements get
// their executions in batches of their own (workflows.go, events.go):
//
//	advancement   a workflow to advance   decides; creates, admits and dispatches children
//	enforcement   enforcement.created     creates, admits and dispatches the execution
func (c stepConfig) steps(work work) (its parts, all []scheduler.Step) {
	its.completion = scheduler.NewCompletionStep(c.completion, work.ended)
	its.request = scheduler.NewRequestStep(work.requested).WithLate(work.late).WithHints(work.said)
	its.reassign = scheduler.NewReassignStep(work.unstarted, c.moveLate)
	all = append(all, its.completion)
	if len(work.lost) > 0 {
		all = append(all, scheduler.NewReturnStep(work.lost))
	}
	if len(work.unstarted) > 0 {
		all = append(all, its.reassign)
	}
	if len(work.deadLetters) > 0 {
		all = append(all, deadletter.NewStep(work.deadLetters, work.room).WithQueueTTL(c.queueTTL))
	}
	if len(work.expired) > 0 {
		all = append(all, scheduler.NewExpireStep(work.expired, c.queueTimeout))
	}
	all = append(all, work.fill())
	if len(work.misplaced) > 0 {
		all = append(all, scheduler.NewMoveStep(work.misplaced))
	}
	return its, append(all, its.request)
}

// parts are the steps with results after the batch.
type parts struct {
	completion *scheduler.CompletionStep
	reassign   *scheduler.ReassignStep
	request    *scheduler.RequestStep
}

type stepConfig struct {
	queueTimeout time.Duration // timeout of queues whose policies have none
	queueTTL     time.Duration // of the queues of workers
	moveLate     bool          // executions that a living worker did not start in time may move
	completion   scheduler.CompletionConfig
}

// work is the input of one batch.
type work struct {
	ended       []scheduler.Report
	requested   []int64                  // executions to start
	late        []int64                  // requests that a sweep found
	said        map[int64]scheduler.Hint // what the messages of the others say
	deadLetters []*deadletter.Message
	room        int // how many of the dead letters may wait for capacity
	chores
}

func (w work) empty() bool {
	return len(w.ended)+len(w.requested)+len(w.deadLetters) == 0 && w.chores.empty()
}

// chores is the work of a batch that comes from no message.
type chores struct {
	queues    []int64       // queues to fill
	waited    map[int64]int // how often another batch held each of them
	expired   []int64       // executions that waited too long
	misplaced []int64       // executions that wait in a queue that is no longer theirs
	lost      []scheduler.LostHolder
	unstarted []scheduler.Unstarted
	due       bool // a queue's waiting time is over
}

var noChores chores

func (e chores) size() int {
	return len(e.queues) + len(e.expired) + len(e.misplaced) + len(e.lost) + len(e.unstarted)
}

func (e chores) empty() bool { return e.size() == 0 && !e.due }

// bisect splits the chores into two smaller parts: one kind from the others, or a single kind in
// its middle.
func (e chores) bisect() (first, second chores) {
	size := e.size()
	first.waited = e.waited
	mixed := func(n int) bool { return n > 0 && n < size }
	second = e
	switch {
	case mixed(len(e.queues)):
		first.queues, second.queues = e.queues, nil
	case mixed(len(e.expired)):
		first.expired, second.expired = e.expired, nil
	case mixed(len(e.misplaced)):
		first.misplaced, second.misplaced = e.misplaced, nil
	case mixed(len(e.lost)):
		first.lost, second.lost = e.lost, nil
	default:
		first.queues, second.queues = bisect(e.queues)
		first.expired, second.expired = bisect(e.expired)
		first.misplaced, second.misplaced = bisect(e.misplaced)
		first.lost, second.lost = bisect(e.lost)
		first.unstarted, second.unstarted = bisect(e.unstarted)
	}
	return first, second
}

func bisect[T any](list []T) (first, second []T) {
	middle := (len(list) + 1) / 2
	return list[:middle], list[middle:]
}
