package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// The bounds of acting on many rows at once.
const (
	// maxSlow bounds the rows of one plan that are planned one by one.
	maxSlow = 200
	// defaultPace is the time between two steps: 20 a second.
	defaultPace = 50 * time.Millisecond
	// maxFailures is how many steps may fail in a row.
	maxFailures = 3
	// stepTimeout ends a step that hangs.
	stepTimeout = 30 * time.Second
)

// step is one row of a plan for many.
type step struct {
	target act.Target
	run    run
}

// skipped is a row that a plan for many leaves alone, and why.
type skipped struct {
	target act.Target
	why    string
}

// sorted is what becomes of the marked rows.
type sorted struct {
	steps   []step
	skipped []skipped
	// word is true when one of the steps alone would ask for a word.
	word bool
	// reach says what else is touched, answer what is answered where something is.
	reach  []act.Line
	answer act.Line
}

func (s *sorted) skip(target act.Target, why string) {
	s.skipped = append(s.skipped, skipped{target, why})
}

// manyVerbs are the acts that take many rows, with the word for them.
var manyVerbs = map[act.Kind]string{
	act.RetryExecution: "retry", act.CancelExecution: "cancel", act.PauseQueue: "pause", act.ResumeQueue: "resume",
	act.CordonWorker: "cordon", act.UncordonWorker: "uncordon", act.DrainWorker: "drain",
	act.PauseWorkflow: "pause", act.ResumeWorkflow: "resume", act.CancelWorkflow: "cancel", act.RetryWorkflow: "begin anew", act.AnswerInquiry: "answer",
}

// planMany plans an act on marked rows as one plan. The rows are those of the
// order: what is run is what was marked, less what is skipped, never more.
func (o *Operator) planMany(ctx context.Context, order act.Order) (*act.Plan, error) {
	rows, err := o.sort(ctx, order)
	if err != nil {
		return nil, err
	}
	n, verb := len(rows.steps), manyVerbs[order.Kind]
	title := fmt.Sprintf("%s %s", sentenceCase(verb), counted(n, order.Kind.Of(), act.Counted(2, order.Kind.Of())))
	plan := &act.Plan{Title: title, Lines: []act.Line{
		line(act.Plain, "%d marked: %d to %s, %d skipped.", len(order.Targets), n, verb, len(rows.skipped)),
	}}
	plan.Lines = append(plan.Lines, skipLines(rows.skipped)...)
	if n == 0 {
		plan.Nothing = "none of them is to be changed"
		return plan, nil
	}
	plan.Lines = append(plan.Lines, rows.reach...)
	if rows.answer.Text != "" {
		plan.Lines = append(plan.Lines, line(act.Plain, "Each is answered with:"), rows.answer,
			line(act.Warn, "An answer is given once and cannot be changed."))
	}
	plan.Lines = append(plan.Lines, line(act.Plain, ""),
		line(act.Note, "One after the other, %d a second, est. %s; it stops after %d failures in a row.", time.Second/defaultPace, lasts(n), maxFailures),
		line(act.Note, "Each row is decided again when its turn comes; what has changed by then is left alone."))
	plan.Word = wordFor(n, fmt.Sprintf("%s %d", verb, n))
	if rows.word && plan.Word == "" {
		plan.Word = fmt.Sprintf("%s %d", verb, n)
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		return o.runMany(ctx, rows.steps, reason), nil
	})
	return plan, nil
}

// lasts is how long so many steps take at least.
func lasts(n int) string {
	return (time.Duration(n)*defaultPace + time.Second - 1).Truncate(time.Second).String()
}

// sort decides of every marked row whether it is acted upon.
func (o *Operator) sort(ctx context.Context, order act.Order) (*sorted, error) {
	if order.Kind.Of() == "execution" {
		return o.sortExecutions(ctx, order)
	}
	if len(order.Targets) > maxSlow {
		return nil, fmt.Errorf("%d are marked; at most %d at once", len(order.Targets), maxSlow)
	}
	rows := &sorted{}
	var unfit *act.InvalidError
	for _, target := range order.Targets {
		if order.Kind.Of() == "queue" && target.Action == "" {
			rows.skip(target, "it is no longer in the list")
			continue
		}
		one, err := planners[order.Kind](o, ctx, act.Order{Kind: order.Kind, Target: target, Values: order.Values})
		if mistake, ok := errors.AsType[*act.InvalidError](err); ok {
			unfit = mistake
			rows.skip(target, unfitFor(mistake))
			continue
		}
		if why := skipFor(err); why != "" {
			rows.skip(target, why)
			continue
		}
		if err != nil {
			return nil, err
		}
		rows.take(order.Kind, target, one)
	}
	if unfit != nil && len(rows.steps) == 0 {
		return nil, unfit // what was written is wrong, not the rows
	}
	return rows, nil
}

// unfitFor is why a row does not take what was written.
func unfitFor(mistake *act.InvalidError) string {
	if why := mistake.Problems[act.FieldAs]; why != "" {
		return why
	}
	return "the answer does not fit it"
}

// skipFor is why a row cannot be acted upon that the others can be without; empty for
// another error.
func skipFor(err error) string {
	if gone, ok := errors.AsType[*triage.TargetError](err); ok {
		return gone.Error()
	}
	if errors.Is(err, triage.ErrNoWorker) {
		return triage.ErrNoWorker.Error()
	}
	return ""
}

// take makes a step of the plan for one row.
func (s *sorted) take(kind act.Kind, target act.Target, one *act.Plan) {
	carryOut, ok := one.Handle.(run)
	if one.Nothing != "" || !ok {
		s.skip(target, one.Nothing)
		return
	}
	if kind == act.AnswerInquiry {
		answer := one.Lines[max(slices.IndexFunc(one.Lines, func(l act.Line) bool { return l.Tone == act.Good }), 0)]
		if s.answer.Text != "" && s.answer.Text != answer.Text {
			s.skip(target, "its form makes another answer of it")
			return
		}
		s.answer = answer
	}
	s.steps, s.word = append(s.steps, step{target, carryOut}), s.word || one.Word != ""
	for i, l := range one.Lines {
		asks := kind == act.AnswerInquiry && i == 0 // its question, without which nobody knows what they answer
		if (asks || kind != act.AnswerInquiry && l.Tone == act.Warn) && len(s.reach) < maxNamed {
			s.reach = append(s.reach, line(l.Tone, "%s: %s", target.Name, l.Text))
		}
	}
}

// sortExecutions reads the marked executions at once, the oldest first, so that
// what is repeated joins its queue in the order in which it came.
func (o *Operator) sortExecutions(ctx context.Context, order act.Order) (*sorted, error) {
	if len(order.Targets) > act.MaxTargets {
		return nil, fmt.Errorf("%d are marked; at most %d at once", len(order.Targets), act.MaxTargets)
	}
	ids := idsOf(order.Targets)
	page, err := o.reader.Executions(ctx, monitor.ExecutionFilter{IDs: ids, Limit: len(ids)}, 0)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]*monitor.Execution, len(page.List))
	for i := range page.List {
		found[page.List[i].ID] = &page.List[i]
	}
	slices.Sort(ids)
	rows, actions, running := &sorted{}, map[string]bool{}, 0
	for _, id := range slices.Compact(ids) {
		target := act.Target{ID: id, Name: strconv.FormatInt(id, 10)}
		x, ok := found[id]
		if !ok {
			rows.skip(target, "there is no such execution")
			continue
		}
		status := attune.Status(x.Status)
		switch {
		case order.Kind == act.RetryExecution && !status.Terminal():
			rows.skip(target, "it has not ended: "+x.Status)
		case order.Kind == act.CancelExecution && status.Terminal():
			rows.skip(target, "it has ended: "+x.Status)
		case order.Kind == act.CancelExecution && status == attune.StatusCanceling:
			rows.skip(target, "its worker was asked to stop it already")
		default:
			actions[x.ActionRef] = true
			if status.HoldsSlot() {
				running++
			}
			rows.steps = append(rows.steps, step{target, o.executionStep(order.Kind, id)})
		}
	}
	rows.reach = append(rows.reach, line(act.Plain, "Touches the queues of %s: %s.", counted(len(actions), "action", "actions"), namesOf(actions)))
	if order.Kind == act.RetryExecution {
		paused, err := o.pausedQueues(ctx, actions)
		if err != nil {
			return nil, err
		}
		rows.reach = append(rows.reach, paused...)
		return rows, o.unawaited(ctx, rows, found)
	}
	if order.Kind == act.CancelExecution {
		rows.reach = append(rows.reach, line(act.Danger, "It cannot be taken back. %s a slot now.", counted(running, "holds", "hold")))
	}
	return rows, nil
}

// pausedQueues warns of queues in which repetitions of these actions wait until an
// operator resumes them.
func (o *Operator) pausedQueues(ctx context.Context, actions map[string]bool) ([]act.Line, error) {
	paused, err := o.reader.Queues(ctx, monitor.QueueFilter{Paused: true})
	if err != nil {
		return nil, err
	}
	var lines []act.Line
	more := 0
	for i := range paused.List {
		q := &paused.List[i]
		if !actions[q.ActionRef] {
			continue
		}
		if len(lines) == maxNamed {
			more++
			continue
		}
		text := "The queue " + q.Name() + " is paused by " + cmp.Or(q.PausedBy, "an operator")
		if q.PauseReason != "" {
			text += " (" + q.PauseReason + ")"
		}
		lines = append(lines, line(act.Warn, "%s: repetitions wait there until you resume it.", text))
	}
	if more > 0 {
		lines = append(lines, line(act.Note, "… and %s", counted(more, "more paused queue", "more paused queues")))
	}
	return lines, nil
}

// unawaited warns of repetitions for which nobody waits, because who started the
// execution has ended.
func (o *Operator) unawaited(ctx context.Context, rows *sorted, found map[int64]*monitor.Execution) error {
	started := map[int64]int{} // by whom, how many
	for _, s := range rows.steps {
		if parent := found[s.target.ID].Parent; parent != nil {
			started[*parent]++
		}
	}
	if len(started) == 0 {
		return nil
	}
	parents := slices.Sorted(maps.Keys(started))
	page, err := o.reader.Executions(ctx, monitor.ExecutionFilter{IDs: parents, Limit: len(parents)}, 0)
	if err != nil {
		return err
	}
	n, ended := 0, map[string]bool{}
	for i := range page.List {
		if x := &page.List[i]; attune.Status(x.Status).Terminal() {
			n += started[x.ID]
			ended[strconv.FormatInt(x.ID, 10)] = true
		}
	}
	if n > 0 {
		rows.reach = append(rows.reach, line(act.Warn, "Nobody waits for %d of them: what has started them has ended (%s).", n, namesOf(ended)))
	}
	return nil
}

// namesOf lists a few names.
func namesOf(set map[string]bool) string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > maxNamed {
		names = append(names[:maxNamed], "…")
	}
	return strings.Join(names, ", ")
}

// executionStep acts on one execution.
func (o *Operator) executionStep(kind act.Kind, id int64) run {
	if kind == act.RetryExecution {
		return func(ctx context.Context, reason string) (*act.Receipt, error) {
			r, err := o.triage.RetryExecution(ctx, id, reason)
			if err != nil {
				return nil, err
			}
			return &act.Receipt{Audits: audits(r.Audit)}, nil
		}
	}
	return func(ctx context.Context, reason string) (*act.Receipt, error) {
		planned, err := o.triage.PlanCancel(ctx, triage.CancelOrder{IDs: []int64{id}, Reason: reason})
		if err != nil {
			return nil, err
		}
		if planned.Acted() == 0 {
			return &act.Receipt{Unchanged: true}, nil
		}
		r, err := o.triage.Cancel(ctx, planned)
		if err != nil {
			return nil, err
		}
		return &act.Receipt{Audits: audits(r.Audit), Unchanged: r.Acted() == 0}, nil
	}
}

// skipLines names the rows that are skipped by their reasons.
func skipLines(list []skipped) []act.Line {
	var reasons []string
	by := map[string][]string{}
	for _, s := range list {
		if by[s.why] == nil {
			reasons = append(reasons, s.why)
		}
		by[s.why] = append(by[s.why], s.target.Name)
	}
	var lines []act.Line
	for _, why := range reasons {
		names, more := by[why], ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], fmt.Sprintf(" and %d more", len(by[why])-maxNamed)
		}
		lines = append(lines, line(act.Warn, "  skipped, %s: %s%s", why, strings.Join(names, ", "), more))
	}
	return lines
}
