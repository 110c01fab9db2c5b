package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// planPause plans to have a workflow start nothing more, or go on.
func (o *Operator) planPause(ctx context.Context, order act.Order) (*act.Plan, error) {
	id, pauses := order.Target.ID, order.Kind == act.PauseWorkflow
	plan := &act.Plan{Title: map[bool]string{true: "Pause", false: "Resume"}[pauses] + " workflow " + strconv.FormatInt(id, 10)}
	d, err := o.workflow(ctx, plan, id)
	if err != nil || d == nil {
		return plan, err
	}
	switch {
	case attune.Status(d.Status).Terminal():
		plan.Nothing = "it has ended: " + d.Status
	case pauses && d.Paused:
		plan.Nothing = "it is paused already"
	case !pauses && !d.Paused && d.PausedAbove != 0:
		plan.Nothing = fmt.Sprintf("it is paused with workflow %d above it, and goes on with that", d.PausedAbove)
	case !pauses && !d.Paused:
		plan.Nothing = "it is not paused"
	case pauses:
		plan.Lines = append(plan.Lines, line(act.Plain, "%s  %s → paused", d.ActionRef, d.Status))
	default:
		plan.Lines = append(plan.Lines, line(act.Plain, "%s  paused → %s", d.ActionRef, d.Status))
		if d.PauseReason != "" {
			plan.Lines = append(plan.Lines, line(act.Note, "It was paused: %s.", strings.TrimSuffix(d.PauseReason, ".")))
		}
	}
	if plan.Nothing != "" {
		return plan, nil
	}
	plan.Lines = append(plan.Lines, taskLines(d, "goes on to its end")...)
	switch ready := tasksThat(d, "ready"); {
	case pauses:
		plan.Lines = append(plan.Lines, line(act.Warn, "Nothing more is started in it, nor in workflows nested in it, until it is resumed; its deadline does not wait."))
	case d.PausedAbove != 0:
		plan.Lines = append(plan.Lines, line(act.Warn, "Workflow %d above it is paused: it goes on with that.", d.PausedAbove))
	case len(ready) > 0:
		plan.Lines = append(plan.Lines, line(act.Plain, "What could have been started is started: %s.", strings.Join(ready, ", ")))
	default:
		plan.Lines = append(plan.Lines, line(act.Plain, "What follows from what has ended is started within seconds."))
	}
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		do, next := o.triage.ResumeWorkflow, ""
		if pauses {
			do, next = o.triage.PauseWorkflow, "A, then u resumes it"
		}
		r, err := do(ctx, id, reason)
		if err != nil {
			return nil, err
		}
		return &act.Receipt{Text: fmt.Sprintf("Workflow %d %s.", id, r.Says), Next: next, Audits: audits(r.Audit), Partly: !r.Changed, Unchanged: !r.Changed}, nil
	})
	return plan, nil
}

// workflow reads the workflow of a plan. Where there is none the plan says so, and
// what is returned is nil.
func (o *Operator) workflow(ctx context.Context, plan *act.Plan, id int64) (*monitor.WorkflowDetail, error) {
	d, err := o.reader.Workflow(ctx, id)
	none, isNone := errors.AsType[*monitor.NoWorkflowError](err)
	switch {
	case isNone:
		plan.Nothing = none.Error()
		return nil, nil //nolint:nilnil // the plan says what there is instead
	case errors.Is(err, monitor.ErrNotFound):
		plan.Nothing = "there is no such workflow"
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, err
	}
	return d, nil
}

// tasksThat names the tasks with a status.
func tasksThat(d *monitor.WorkflowDetail, status string) []string {
	var names []string
	for i := range d.List {
		if d.List[i].Status == status {
			names = append(names, d.List[i].Name)
		}
	}
	return names
}

// taskLines names the tasks that are touched: those on their way with what becomes of
// them, and those that nothing has led to.
func taskLines(d *monitor.WorkflowDetail, becomes string) []act.Line {
	var lines []act.Line
	running, unreached := 0, []string{}
	for i := range d.List {
		t := &d.List[i]
		switch t.Status {
		case "running":
			if running++; running <= maxNamed && t.Type != "parallel" {
				lines = append(lines, line(act.Plain, "  %s  %s: %s", t.Name, t.Says, becomes))
			}
		case "", "waiting":
			unreached = append(unreached, t.Name)
		}
	}
	if running > maxNamed {
		lines = append(lines, line(act.Note, "  … and %d more tasks", running-maxNamed))
	}
	if len(unreached) > 0 {
		more := ""
		if len(unreached) > maxNamed {
			more, unreached = fmt.Sprintf(" and %d more", len(unreached)-maxNamed), unreached[:maxNamed]
		}
		lines = append(lines, line(act.Note, "  not begun: %s%s", strings.Join(unreached, ", "), more))
	}
	return lines
}

// planCancelWorkflow plans to end a workflow.
func (o *Operator) planCancelWorkflow(ctx context.Context, order act.Order) (*act.Plan, error) {
	id := order.Target.ID
	plan := &act.Plan{Title: "Cancel workflow " + strconv.FormatInt(id, 10)}
	d, err := o.workflow(ctx, plan, id)
	if err != nil || d == nil {
		return plan, err
	}
	planned, err := o.triage.PlanCancel(ctx, triage.CancelOrder{IDs: []int64{id}})
	if err != nil {
		return nil, err
	}
	plan.Lines = append(plan.Lines, cancelLines(planned.Executions)...)
	if planned.Acted() == 0 {
		plan.Nothing = nothingToCancel(planned, false)
		return plan, nil
	}
	becomes := "what runs goes on to its end, what waits is cancelled"
	if d.Cancellation == "cancel_running" {
		becomes = "is stopped"
	}
	plan.Lines = append(plan.Lines, taskLines(d, becomes)...)
	plan.Lines = append(plan.Lines, line(act.Plain, ""),
		line(act.Note, "What becomes of what runs its cancellation_policy says: %s. Cancel tree stops that too.", d.Cancellation),
		line(act.Danger, "It cannot be taken back: begun anew, all of it is done again."))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		receipt, err := o.triage.CancelWorkflow(ctx, id, reason)
		return cancelReceipt(receipt), err
	})
	return plan, nil
}

// planRetryWorkflow plans to begin a workflow anew that has ended.
func (o *Operator) planRetryWorkflow(ctx context.Context, order act.Order) (*act.Plan, error) {
	plan, err := o.planRetry(ctx, order)
	if err != nil {
		return nil, err
	}
	plan.Title = "Begin workflow " + strconv.FormatInt(order.Target.ID, 10) + " anew"
	if plan.Nothing == "" {
		plan.Lines = append(plan.Lines, line(act.Warn, "All its tasks begin anew: what was done is done a second time."))
	}
	return plan, nil
}

// planRetryTask plans to repeat one child of a workflow, and says what that is to the
// workflow.
func (o *Operator) planRetryTask(ctx context.Context, order act.Order) (*act.Plan, error) {
	plan, err := o.planRetry(ctx, order)
	if err != nil || plan.Nothing != "" {
		return plan, err
	}
	detail, err := o.reader.Execution(ctx, order.Target.ID)
	if err != nil {
		return nil, err
	}
	if detail.Parent == nil {
		return plan, nil
	}
	d, err := o.workflow(ctx, &act.Plan{}, *detail.Parent)
	if err != nil || d == nil {
		return plan, err
	}
	plan.Lines = append(plan.Lines, heardLine(d, order.Target.ID))
	return plan, nil
}

// heardLine says whether a workflow waits for the repetition of a child.
func heardLine(d *monitor.WorkflowDetail, id int64) act.Line {
	if attune.Status(d.Status).Terminal() {
		return line(act.Warn, "Its workflow %d has ended (%s) and stays so: the work is done again, and nothing follows from it.", d.Execution, d.Status)
	}
	for i := range d.List {
		for _, c := range d.List[i].Children {
			switch {
			case c.Execution != id:
			case c.Drawn:
				return line(act.Warn, "Workflow %d has gone on from this end (%s is %s) and does not change that: nothing follows from the repetition in it.",
					d.Execution, d.List[i].Name, d.List[i].Status)
			default:
				return line(act.Plain, "Task %s of workflow %d waits for the repetition instead.", d.List[i].Name, d.Execution)
			}
		}
	}
	return line(act.Note, "If workflow %d has gone on from this end, it does not change that.", d.Execution)
}

// planAnswer plans to answer a question with what was written into its form.
func (o *Operator) planAnswer(ctx context.Context, order act.Order) (*act.Plan, error) {
	id := order.Target.ID
	plan := &act.Plan{Title: "Answer inquiry " + strconv.FormatInt(id, 10)}
	d, err := o.reader.Inquiry(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		plan.Nothing = "there is no such inquiry"
		return plan, nil
	}
	if err != nil {
		return nil, err
	}
	form := d.Form()
	texts := map[string]string{}
	for name, value := range order.Values {
		if field, ok := strings.CutPrefix(name, act.FieldAnswer); ok {
			texts[field] = value
		}
	}
	response, problems := form.Compose(texts)
	for name := range texts {
		if !slices.ContainsFunc(form.Fields, func(f inquiry.AnswerField) bool { return f.Name == name }) {
			problems = map[string]string{"": "it does not ask for " + name} // it would be left out
		}
	}
	if len(problems) > 0 && d.Open() {
		return nil, invalid(problems)
	}
	if len(problems) > 0 {
		response = []byte("null") // it is refused for what has become of it
	}
	answer := triage.AnswerOrder{Inquiry: id, Response: response, As: strings.TrimSpace(order.Values[act.FieldAs])}
	planned, err := o.triage.PlanAnswer(ctx, answer)
	if err != nil {
		return plan, refusal(plan, form, err)
	}
	plan.Lines = []act.Line{line(act.Plain, "%s", planned.Prompt), line(act.Plain, ""), line(act.Good, "%s", string(planned.Public))}
	if answer.As != "" {
		plan.Lines = append(plan.Lines, line(act.Plain, "in the name of %s", answer.As))
	}
	plan.Lines = append(plan.Lines, line(act.Plain, ""), line(act.Plain, "%s", follows(planned, d)),
		line(act.Warn, "An answer is given once and cannot be changed."))
	plan.Handle = run(func(ctx context.Context, reason string) (*act.Receipt, error) {
		answer.Note = reason
		r, err := o.triage.Answer(ctx, answer)
		if err != nil {
			return nil, err
		}
		return &act.Receipt{
			Text: fmt.Sprintf("Inquiry %d is answered.", id), Lines: []act.Line{line(act.Plain, "%s", follows(&r.AnswerPlan, d))},
			Next: delivered(r.Sent), Audits: audits(r.Audit),
		}, nil
	})
	return plan, nil
}

// follows says what follows from an answer.
func follows(p *triage.AnswerPlan, d *monitor.InquiryDetail) string {
	text := fmt.Sprintf("Execution %d (%s) has completed already and is told.", p.Execution, p.ActionRef)
	if p.Completes {
		text = fmt.Sprintf("Execution %d (%s) completes with it.", p.Execution, p.ActionRef)
	}
	if d.Workflow != nil {
		text += fmt.Sprintf(" Workflow %d (%s) goes on.", *d.Workflow, d.WorkflowRef)
	}
	return text
}

// refusal tells of an answer that was refused: beside the field that it is about, or
// as the reason why there is nothing to do.
func refusal(plan *act.Plan, form *inquiry.AnswerForm, err error) error {
	if errors.Is(err, triage.ErrNoInquiry) {
		plan.Nothing = err.Error()
		return nil
	}
	refused, ok := errors.AsType[*triage.AnswerRefusedError](err)
	switch {
	case !ok:
		return err
	case refused.Reason == triage.AnswerUnfit:
		return invalid(form.Blame(refused.Mistakes))
	case refused.Reason == triage.AnswerNotYours, refused.Reason == triage.AnswerUnknown:
		return &act.InvalidError{Problems: map[string]string{act.FieldAs: refused.Text}}
	default:
		plan.Nothing = refused.Text
		return nil
	}
}

// invalid tells of what is wrong with the fields of an answer.
func invalid(problems map[string]string) error {
	fields := make(map[string]string, len(problems))
	for name, text := range problems {
		if name != "" {
			name = act.FieldAnswer + name
		}
		fields[name] = text
	}
	return &act.InvalidError{Problems: fields}
}
