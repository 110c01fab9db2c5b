package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

func deadLetters(n int) string { return phrase.Plural(n, "dead letter", "dead letters") }

// deadLetter reads a dead letter and begins its plan.
func (o *Operator) deadLetter(ctx context.Context, request Request, plan *Plan) (*monitor.LedgerDetail, error) {
	deadLetter, err := o.reader.DeadLetter(ctx, request.Target.ID)
	if err != nil {
		return nil, err
	}
	about := deadLetter.What + ", " + deadLetter.Reason
	if deadLetter.Queue != "" {
		about += " in " + deadLetter.Queue
	}
	if deadLetter.ActionRef != "" {
		about += ", " + deadLetter.ActionRef
	}
	if deadLetter.Execution != nil {
		about += ", execution " + strconv.FormatInt(*deadLetter.Execution, 10)
		if deadLetter.StatusNow != "" {
			about += " (" + deadLetter.StatusNow + " now)"
		}
	}
	plan.DeadLetters = request.IDs()
	plan.Lines.Add(Plain, "%s", sentence(about))
	return deadLetter, nil
}

// wanted begins the plan of an act on the chosen dead letters that keep selects. It returns them in the order in
// which their executions were requested, so that every queue stays FIFO. Dead letters without an execution come last.
func (o *Operator) wanted(
	ctx context.Context, request Request, plan *Plan, keep func(*monitor.LedgerEntry) bool,
) (kept chosen, err error) {
	found, err := o.reader.DeadLettersByID(ctx, request.IDs())
	if err != nil {
		return nil, err
	}
	monitor.SortByExecution(found)
	for i := range found {
		if keep(&found[i]) {
			kept = append(kept, found[i])
		}
	}
	verb := request.Kind.Verb()
	plan.Title, plan.DeadLetters = capital(verb)+" "+deadLetters(len(kept)), request.IDs()
	plan.Word = wordFor(len(kept), "%s %d", verb, len(kept))
	return kept, nil
}

// open begins the plan of an act on waiting dead letters.
func (o *Operator) open(ctx context.Context, request Request, plan *Plan) (open chosen, err error) {
	if open, err = o.wanted(ctx, request, plan, (*monitor.LedgerEntry).Open); err != nil {
		return nil, err
	}
	all := len(request.All())
	plan.Lines.Add(Plain, "%d chosen: %d wait, %d are decided or gone", all, len(open), all-len(open))
	if len(open) == 0 {
		return nil, nothing("none of them waits")
	}
	return open, nil
}

// chosen are dead letters of a plan.
type chosen []monitor.LedgerEntry

func (c chosen) ids() (ids []int64) {
	for i := range c {
		ids = append(ids, c[i].ID)
	}
	return ids
}

// sayNotKept describes what messages lose when they are sent again.
func (c chosen) sayNotKept(plan *Plan) {
	lost := map[string]int{}
	for i := range c {
		for _, text := range c[i].NotKept {
			lost[text]++
		}
	}
	addFirst(&plan.Lines, slices.Sorted(maps.Keys(lost)), "▲ … and %d more", func(text string) TextLine {
		if len(c) > 1 {
			text = fmt.Sprintf("%s (%d of %d)", text, lost[text], len(c))
		}
		return line(Warn, "▲ lost: %s", text)
	})
}

// runs makes the run of a plan from a run of triage.
func (o *Operator) runs(kind Kind, do func(ctx context.Context, reason string) (*triage.RunReceipt, error)) Run {
	return does(do, func(r *triage.RunReceipt) *Receipt {
		receipt := o.runReceipt(r)
		receipt.Text = capital(kind.Verb()) + ": " + receipt.Text
		return receipt
	})
}

// eachDeadLetter makes the run of an act on one dead letter after the other. do returns the audit of one.
func (o *Operator) eachDeadLetter(
	kind Kind, ids []int64, do func(ctx context.Context, id int64, reason string) (int64, error),
) Run {
	run := triage.Run{Lock: triage.DeadLettersLock}
	for _, id := range ids {
		run.Steps = append(run.Steps, triage.Step{
			Rows: []int64{id},
			Do: func(ctx context.Context, reason string) (triage.Outcome, error) {
				row, err := do(ctx, id, reason)
				return triage.Outcome{Done: 1, Audits: []int64{row}}, err
			},
		})
	}
	return o.runs(kind, func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.Run(ctx, run, reason)
	})
}

// one makes a run of one row, of which a refusal is the error. unchanged is the reason why the row stays as it is if no
// step says so.
func one(request *Request, unchanged string, run Run) Run {
	return func(ctx context.Context, reason string) (*Receipt, error) {
		receipt, err := run(ctx, reason)
		if err != nil {
			return nil, err
		}
		r, _ := receipt.Data.(*triage.RunReceipt)
		for _, note := range r.Notes {
			if note.Failed || triage.Refused(note.Err) {
				return nil, note.Err
			}
		}
		if r.Done == 0 {
			return nil, refuse(Refused, "%s %s", request.subject(), unchanged)
		}
		return receipt, nil
	}
}
