package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// afterwards is what a batch writes about ended executions and due retries.
type afterwards struct {
	repeats        []repeat
	repeated       *store.Result[store.RepeatExecutionsRow] // nil when nothing is repeated
	begun          []int64                                  // retries that are due
	contradictions []contradiction
	outcomes       []store.ReadOutcomesRow
}

type repeat struct {
	execution int64
	reason    lifecycle.RetryReason
	delay     time.Duration
}

type contradiction struct {
	execution int64
	said      lifecycle.Status
}

// Repeat creates the next attempt of an ended execution: a new row, which waits for its time
// without a queue or a slot. An execution is repeated once, however many batches request it.
func (b *Batch) Repeat(id int64, reason lifecycle.RetryReason, delay time.Duration) {
	b.repeats = append(b.repeats, repeat{execution: id, reason: reason, delay: delay})
}

// Begin marks a retry as due.
func (b *Batch) Begin(id int64) { b.begun = append(b.begun, id) }

// Contradict records that a report named another end than the row. It changes nothing else: the row
// decides.
func (b *Batch) Contradict(id int64, said lifecycle.Status) {
	b.contradictions = append(b.contradictions, contradiction{execution: id, said: said})
}

// Announce publishes the end of an execution that ended without a report.
func (b *Batch) Announce(outcome store.ReadOutcomesRow) { b.outcomes = append(b.outcomes, outcome) }

func (a *afterwards) writeRepeats(p *store.Pipeline) {
	a.repeated = nil
	n := len(a.repeats)
	if n == 0 {
		return
	}
	slices.SortFunc(a.repeats, func(x, y repeat) int { return cmp.Compare(x.execution, y.execution) })
	ids, reasons, delays := make([]int64, n), make([]string, n), make([]float64, n)
	for i, one := range a.repeats {
		ids[i], reasons[i], delays[i] = one.execution, string(one.reason), one.delay.Seconds()
	}
	var noActor *string
	a.repeated = store.Many[store.RepeatExecutionsRow](p, store.RepeatExecutions, ids, reasons, delays, noActor)
}

func (a *afterwards) writeContradictions(p *store.Pipeline) {
	n := len(a.contradictions)
	if n == 0 {
		return
	}
	ids, said := make([]int64, n), make([]string, n)
	for i, one := range a.contradictions {
		ids[i], said[i] = one.execution, string(one.said)
	}
	p.Exec(store.RecordContradictions, message.KeyExecutionCompleted, ids, said)
}

// soonest is the shortest delay of the new retries, 0 without any.
func (a *afterwards) soonest() time.Duration {
	first := time.Duration(0)
	for _, one := range a.repeats {
		if wait := max(one.delay, time.Millisecond); first == 0 || wait < first {
			first = wait
		}
	}
	return first
}
