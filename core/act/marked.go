package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// maxSlow is the largest number of rows whose plans are made one by one.
const maxSlow = 200

// marked collects the plan for marked rows: steps that run one after the other, and skipped rows.
type marked struct {
	steps   []triage.Step
	reasons []string // keys of skipped, in the order of their first row
	skipped map[string][]string
	// word is true if one of the rows alone requires a word.
	word bool
	// reach describes other affected things. answer is the common answer to marked inquiries.
	reach  TextLines
	answer string
}

func (m *marked) skip(target Target, why string) {
	if m.skipped[why] == nil {
		m.reasons = append(m.reasons, why)
	}
	m.skipped[why] = append(m.skipped[why], target.Name)
}

// add adds the plan of one row as a step.
func (m *marked) add(target Target, run Run) {
	m.steps = append(m.steps, triage.Step{
		Rows: []int64{target.ID}, Name: target.Name,
		Do: func(ctx context.Context, reason string) (triage.Outcome, error) {
			r, err := run(ctx, reason)
			if err != nil || r.Unchanged {
				return triage.Outcome{}, err
			}
			return triage.Outcome{Done: 1, Audits: r.Audits}, nil
		},
	})
}

// planMarked plans an act on marked rows as one plan. It runs at most the rows of the request.
func (o *Operator) planMarked(ctx context.Context, request Request, plan *Plan) error {
	rows := &marked{skipped: map[string][]string{}}
	each := o.eachMarked
	if request.Kind.Of() == "execution" {
		each = o.markedExecutions
	}
	if err := each(ctx, request, rows); err != nil {
		return err
	}
	n, verb, what := len(rows.steps), request.Kind.Verb(), request.Kind.Of()
	plan.Title = fmt.Sprintf("%s %s", capital(verb), phrase.Plural(n, what, phrase.Nouns(2, what)))
	plan.Lines.Add(Plain, "%d marked: %d to %s, %d skipped.", len(request.Targets), n, verb, len(request.Targets)-n)
	for _, why := range rows.reasons {
		plan.Lines.Add(Warn, "  skipped, %s: %s", why, namesOf(rows.skipped[why], " and %d more"))
	}
	if n == 0 {
		return nothing("none of them is to be changed")
	}
	plan.Lines = append(plan.Lines, rows.reach...)
	if rows.answer != "" {
		plan.Lines.Add(Plain, "Each is answered with:")
		plan.Lines.Add(Good, "%s", rows.answer)
		plan.Lines.Add(Warn, "An answer is given once and cannot be changed.")
	}
	plan.Lines.Add(Plain, "")
	if rows.word || n > many {
		plan.Word = fmt.Sprintf("%s %d", verb, n)
	}
	if request.Kind == CancelExecution || request.Kind == CancelWorkflow {
		plan.Lines.Add(Note, "First all waiting ones are withdrawn, so that none of them starts.")
		plan.Lines.Add(Note, "Then workers are asked to stop the others, %d a second.", time.Second/triage.DefaultPace)
		plan.Lines.Add(Note, "Each row is checked again; rows that have ended by then are skipped.")
		wish := triage.CancelRequest{Paced: true}
		for _, step := range rows.steps {
			wish.IDs = append(wish.IDs, step.Rows...)
		}
		plan.Run = o.cancels(request.Kind, wish)
		return nil
	}
	unpaced := slices.Contains(holdsBack, request.Kind)
	pace := "at once"
	if !unpaced {
		lasts := (time.Duration(n)*triage.DefaultPace + time.Second - 1).Truncate(time.Second)
		pace = fmt.Sprintf("%d a second, est. %s", time.Second/triage.DefaultPace, lasts)
	}
	plan.Lines.Add(Note, "One after the other, %s; it stops after %d failures in a row.", pace, triage.MaxFailures)
	plan.Lines.Add(Note, "Each row is checked again in its turn; rows that have changed by then are skipped.")
	plan.Run = does(func(ctx context.Context, reason string) (*triage.RunReceipt, error) {
		return o.triage.Run(ctx, triage.Run{Steps: rows.steps, Unpaced: unpaced}, reason)
	}, o.runReceipt)
	return nil
}

// holdsBack are the acts that start nothing and disturb no running work.
var holdsBack = []Kind{PauseQueue, PauseWorkflow, CordonWorker, DrainWorker}

func (o *Operator) runReceipt(r *triage.RunReceipt) *Receipt {
	receipt := &Receipt{
		Text:   outcome(r.Done, r.Planned, "done", other{r.Changed, "changed meanwhile"}, other{r.Failed, "failed"}),
		Audits: r.Audits, Partly: r.Done < r.Planned, Left: r.Left,
	}
	if r.Stopped != "" {
		receipt.Lines.Add(Warn, "%s; %d were not reached and stay marked.", capital(r.Stopped), len(r.Left))
		receipt.Next = "the same again goes on with those"
	}
	for _, note := range r.Notes {
		tone, text := Note, o.problem(&Request{}, note.Err, true).Error()
		if note.Failed {
			tone = Danger
		}
		if note.Name != "" {
			text = note.Name + ": " + text
		}
		receipt.Lines.Add(tone, "%s", text)
	}
	return receipt
}

func (o *Operator) eachMarked(ctx context.Context, request Request, rows *marked) error {
	if len(request.Targets) > maxSlow {
		return fmt.Errorf("%d are marked; at most %d at once", len(request.Targets), maxSlow)
	}
	var unfit *InvalidError
	oldest := slices.SortedFunc(slices.Values(request.Targets),
		func(a, b Target) int { return cmp.Compare(a.ID, b.ID) })
	for _, target := range oldest { // work that is begun again joins its queue in the order of the first requests
		if request.Kind.Of() == "queue" && target.Action == "" {
			rows.skip(target, "it is no longer in the list")
			continue
		}
		one, err := o.plan(ctx, Request{Kind: request.Kind, Target: target, Values: request.Values})
		mistake, isUnfit := errors.AsType[*InvalidError](err)
		switch {
		case isUnfit:
			unfit = mistake
			rows.skip(target, cmp.Or(mistake.Problems[FieldAs], "the answer does not fit it"))
		case err != nil:
			return err
		case one.Problem != nil && one.Problem.Kind == Missing:
			rows.skip(target, "there is no such "+request.Kind.Of())
		case one.Nothing != "":
			rows.skip(target, one.Nothing)
		default:
			rows.take(request.Kind, target, one)
		}
	}
	if unfit != nil && len(rows.steps) == 0 {
		return unfit // the values are wrong, not the rows
	}
	return nil
}

// take adds the plan of one row to the plan of all.
func (m *marked) take(kind Kind, target Target, one *Plan) {
	if kind == AnswerInquiry {
		at := slices.IndexFunc(one.Lines, func(l TextLine) bool { return l.Tone == Good })
		answer := one.Lines[max(at, 0)].Text
		if m.answer != "" && m.answer != answer {
			m.skip(target, "its form makes another answer of it")
			return
		}
		m.answer = answer
	}
	m.add(target, one.Run)
	m.word = m.word || one.Word != ""
	for i, l := range one.Lines {
		asks := kind == AnswerInquiry && i == 0 // the prompt, which the answer refers to
		if (asks || kind != AnswerInquiry && l.Tone == Warn) && len(m.reach) < maxNamed {
			m.reach.Add(l.Tone, "%s: %s", target.Name, l.Text)
		}
	}
}

// markedExecutions reads the marked executions in one query, oldest first, so that retries join their queues in the
// original order.
func (o *Operator) markedExecutions(ctx context.Context, request Request, rows *marked) error {
	if len(request.Targets) > MaxTargets {
		return fmt.Errorf("%d are marked; at most %d at once", len(request.Targets), MaxTargets)
	}
	ids := request.IDs()
	found, err := o.executions(ctx, ids)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	actions, parents, running := map[string]bool{}, map[int64]int{}, 0
	for _, id := range slices.Compact(ids) {
		target := Target{ID: id, Name: strconv.FormatInt(id, 10)}
		x, ok := found[id]
		if !ok {
			rows.skip(target, "there is no such execution")
			continue
		}
		menu := ForExecution(x)
		if not := menu.Not(request.Kind); not != "" {
			rows.skip(target, not)
			continue
		}
		actions[x.ActionRef] = true
		if x.Parent != nil {
			parents[*x.Parent]++
		}
		if lifecycle.Status(x.Status).HoldsSlot() {
			running++
		}
		rows.add(target, o.direct(request.Kind, target))
	}
	rows.reach.Add(Plain, "Touches the queues of %s: %s.", phrase.Plural(len(actions), "action", "actions"),
		namesOf(slices.Sorted(maps.Keys(actions)), ", …"))
	if request.Kind == CancelExecution {
		rows.reach.Add(Danger, "This cannot be undone. %s a slot now.", phrase.Plural(running, "holds", "hold"))
		return nil
	}
	if err := o.sayPaused(ctx, &rows.reach, actions); err != nil {
		return err
	}
	return o.sayUnawaited(ctx, &rows.reach, parents)
}

// direct is the run of one row whose plan others have made.
func (o *Operator) direct(kind Kind, target Target) Run {
	return func(ctx context.Context, reason string) (*Receipt, error) {
		return o.Do(ctx, Request{Kind: kind, Target: target}, reason)
	}
}

func (o *Operator) executions(ctx context.Context, ids []int64) (map[int64]*monitor.Execution, error) {
	page, err := o.reader.Executions(ctx, monitor.ExecutionFilter{IDs: ids, Limit: len(ids)}, 0)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]*monitor.Execution, len(page.List))
	for i := range page.List {
		found[page.List[i].ID] = &page.List[i]
	}
	return found, nil
}

// sayPaused warns of paused queues, in which retries wait until an operator resumes them.
func (o *Operator) sayPaused(ctx context.Context, lines *TextLines, actions map[string]bool) error {
	paused, err := o.reader.Queues(ctx, monitor.QueueFilter{Paused: true})
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(paused.List), func(q monitor.Queue) bool { return !actions[q.ActionRef] })
	more := "… and %d more paused queues"
	if len(list) == maxNamed+1 {
		more = "… and %d more paused queue"
	}
	addFirst(lines, list, more, func(q monitor.Queue) TextLine {
		text := "The queue " + q.Name() + " is paused by " + cmp.Or(q.PausedBy, "an operator")
		if q.PauseReason != "" {
			text += " (" + q.PauseReason + ")"
		}
		return line(Warn, "%s: retries wait there until you resume it.", text)
	})
	return nil
}

// sayUnawaited warns of retries whose parent has ended. started counts the executions of each parent.
func (o *Operator) sayUnawaited(ctx context.Context, lines *TextLines, started map[int64]int) error {
	if len(started) == 0 {
		return nil
	}
	found, err := o.executions(ctx, slices.Sorted(maps.Keys(started)))
	if err != nil {
		return err
	}
	n, ended := 0, []string{}
	for id, x := range found {
		if lifecycle.Status(x.Status).Terminal() {
			n += started[id]
			ended = append(ended, strconv.FormatInt(id, 10))
		}
	}
	slices.Sort(ended)
	if n > 0 {
		lines.Add(Warn, "%d of them have no waiting parent: it has ended (%s).", n,
			namesOf(ended, ", …"))
	}
	return nil
}
