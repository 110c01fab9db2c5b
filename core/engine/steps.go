package engine

import (
	"time"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/scheduler"
)

// steps lists what a message meets, in the order it meets it. One batch takes
// everything that has arrived: what has ended gives back its slot, who waits
// takes it, and only then do newcomers enter, so that nobody overtakes.
//
//	step          trigger               what it does
//	completion    execution.completed   releases the holder once; repeats what may be
//	return        a deleted execution   gives back what it held
//	reassign      a worker that is gone finds another for what was not started
//	letters       a hand-over that died finds another worker, or ends
//	expiry        a wait too long       ends it, out of its line
//	fill          slots that are free   promotes waiting heads, in order
//	move          a policy's new groups puts who waits into the right line
//	dispatch      execution.requested   claims, admits or queues, hands over
//	(a worker)    execution.dispatch.…  scheduled → running → terminal
//
// Workflows that ask to run, and children that have ended, are handed to the batches
// of package advancement, and enforcements get their executions in batches of their
// own (workflows.go, enforcements.go):
//
//	advancement   a workflow's turn     decides; makes children, admits and hands them over
//	enforcement   enforcement.created   makes the execution, admits and hands it over
func (c stepConfig) steps(work work) (its parts, all []scheduler.Step) {
	its.done = scheduler.NewCompletionStep(c.completion, work.ended)
	its.asked = scheduler.NewRequestStep(work.requested).WithLate(work.late).WithHints(work.said)
	its.reassign = scheduler.NewReassignStep(work.unstarted, c.moveLate)
	all = append(all, its.done)
	if len(work.lost) > 0 {
		all = append(all, scheduler.NewReturnStep(work.lost))
	}
	if len(work.unstarted) > 0 {
		all = append(all, its.reassign)
	}
	if len(work.letters) > 0 {
		all = append(all, deadletter.NewStep(work.letters, work.room))
	}
	if len(work.expired) > 0 {
		all = append(all, scheduler.NewExpireStep(work.expired, c.queueTimeout))
	}
	all = append(all, work.fill())
	if len(work.misplaced) > 0 {
		all = append(all, scheduler.NewMoveStep(work.misplaced))
	}
	return its, append(all, its.asked)
}

// parts are the steps that have something to say after the batch.
type parts struct {
	done     *scheduler.CompletionStep
	reassign *scheduler.ReassignStep
	asked    *scheduler.RequestStep
}

// stepConfig is what the steps depend on.
type stepConfig struct {
	queueTimeout time.Duration // how long one may wait in a queue whose policies do not say
	moveLate     bool          // what a living worker has not started in time may go to another
	completion   scheduler.CompletionConfig
}

// work is what one batch is given.
type work struct {
	ended     []scheduler.Report
	requested []int64                  // executions that ask to run
	late      []int64                  // those of them that a sweep found
	said      map[int64]scheduler.Hint // what the messages of the others say
	letters   []*deadletter.Letter
	room      int // how many of the letters may wait for a worker to have room
	chores
}

func (w work) empty() bool {
	return len(w.ended)+len(w.requested)+len(w.letters) == 0 && w.chores.empty()
}

// chores are what a batch does besides what messages ask for.
type chores struct {
	queues    []int64       // queues to fill
	waited    map[int64]int // how often each was left because another batch held it
	expired   []int64       // executions that have waited too long
	misplaced []int64       // executions that wait in a queue that is no longer theirs
	lost      []scheduler.LostHolder
	unstarted []scheduler.Unstarted
	due       bool // somebody waits for a moment that has come
}

var noChores chores

func (e chores) size() int {
	return len(e.queues) + len(e.expired) + len(e.misplaced) + len(e.lost) + len(e.unstarted)
}

func (e chores) empty() bool { return e.size() == 0 && !e.due }

// bisect parts the chores into two parts that are both smaller: one kind from
// the others, or a single kind in its middle.
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
