package engine

import (
	"github.com/attune-go/attune/core/completion"
	"github.com/attune-go/attune/core/dispatch"
	"github.com/attune-go/attune/core/handover"
)

// steps lists what a message meets, in the order it meets it. One round takes
// everything that has arrived: what has ended gives back its slot, who waits
// takes it, and only then do newcomers enter, so that nobody overtakes.
//
//	step          trigger               what it does
//	completion    execution.completed   releases the holder once
//	fill          slots that are free   promotes waiting heads, in order
//	dispatch      execution.requested   claims, admits or queues, hands over
//	(a worker)    execution.dispatch.…  scheduled → running → terminal
func steps(work work) (done *completion.Step, all []handover.Step) {
	done = completion.New(work.ended)
	return done, []handover.Step{
		done,
		handover.Fill{Queues: work.queues},
		dispatch.New(work.requested),
	}
}

// work is what one round is given.
type work struct {
	ended     []int64 // executions reported as ended
	queues    []int64 // queues to fill
	requested []int64 // executions that ask to run
}

func (w work) empty() bool { return len(w.ended)+len(w.queues)+len(w.requested) == 0 }
