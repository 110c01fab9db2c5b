package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/retrypolicy"
	"github.com/attune-go/attune/core/store"
)

// afterwards is what a batch writes about executions that have ended, and about
// repetitions whose time has come.
type afterwards struct {
	repeats  []repeat
	repeated *store.Result[store.RepeatExecutionsRow] // nil when nothing is repeated
	begun    []int64                                  // repetitions whose time has come
	said     []contradiction
	outcomes []store.ReadOutcomesRow
}

// repeat is an ended execution that is to be repeated.
type repeat struct {
	execution int64
	reason    retrypolicy.Reason
	delay     time.Duration
}

// contradiction is a report that says another end than the row.
type contradiction struct {
	execution int64
	said      attune.Status
}

// Repeat makes the next attempt of an execution that has ended: a new row, which
// waits for its time in no line and with no slot. An execution is repeated once,
// however often and by however many batches it is asked for.
func (b *Batch) Repeat(id int64, reason retrypolicy.Reason, delay time.Duration) {
	b.repeats = append(b.repeats, repeat{execution: id, reason: reason, delay: delay})
}

// Begin says that the time of a repetition has come.
func (b *Batch) Begin(id int64) { b.begun = append(b.begun, id) }

// Contradict records that somebody reported another end of an execution than
// its row says. It changes nothing else: the row decides.
func (b *Batch) Contradict(id int64, said attune.Status) {
	b.said = append(b.said, contradiction{execution: id, said: said})
}

// Announce says that an execution has ended on behalf of whoever ended it and
// did not say so.
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
	var nobody *string
	a.repeated = store.Many[store.RepeatExecutionsRow](p, store.RepeatExecutions, ids, reasons, delays, nobody)
}

func (a *afterwards) writeContradictions(p *store.Pipeline) {
	n := len(a.said)
	if n == 0 {
		return
	}
	ids, said := make([]int64, n), make([]string, n)
	for i, one := range a.said {
		ids[i], said[i] = one.execution, string(one.said)
	}
	p.Exec(store.RecordContradictions, message.KeyExecutionCompleted, ids, said)
}

// soonest is after how long the first of the new repetitions is due, 0 when there
// is none.
func (a *afterwards) soonest() time.Duration {
	first := time.Duration(0)
	for _, one := range a.repeats {
		if wait := max(one.delay, time.Millisecond); first == 0 || wait < first {
			first = wait
		}
	}
	return first
}
