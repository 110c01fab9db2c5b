package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// planPause plans to pause or resume a workflow.
func (o *Operator) planPause(ctx context.Context, request Request, plan *Plan) error {
	id, pauses := request.Target.ID, request.Kind == PauseWorkflow
	d, err := o.workflow(ctx, id)
	if err != nil {
		return err
	}
	menu := ForWorkflow(&d.Workflow)
	if not := menu.Not(request.Kind); not != "" {
		return nothing(not)
	}
	if pauses {
		plan.Lines.Add(Plain, "%s  %s → paused", d.ActionRef, d.Status)
	} else {
		plan.Lines.Add(Plain, "%s  paused → %s", d.ActionRef, d.Status)
		if d.PauseReason != "" {
			plan.Lines.Add(Note, "It was paused: %s.", strings.TrimSuffix(d.PauseReason, "."))
		}
	}
	ready := sayTasks(plan, d, "goes on to its end")
	switch {
	case pauses:
		plan.Lines.Add(Warn, "Nothing more is started in it, nor in workflows nested in it, until it is resumed; "+
			"its deadline does not wait.")
	case d.PausedAbove != 0:
		plan.Lines.Add(Warn, "Workflow %d above it is paused: it goes on with that.", d.PausedAbove)
	case len(ready) > 0:
		plan.Lines.Add(Plain, "Ready tasks start: %s.", strings.Join(ready, ", "))
	default:
		plan.Lines.Add(Plain, "Tasks that are due start within seconds.")
	}
	do, next := o.triage.ResumeWorkflow, ""
	if pauses {
		do, next = o.triage.PauseWorkflow, "A, then u resumes it"
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.WorkflowReceipt, error) {
		return do(ctx, id, reason)
	}, func(r *triage.WorkflowReceipt) *Receipt {
		return &Receipt{
			Text: fmt.Sprintf("Workflow %d %s.", id, r.Says), Next: next, Audits: audits(r.Audit),
			Partly: !r.Changed, Unchanged: !r.Changed,
		}
	})
	return nil
}

// workflow reads a workflow. If there is none, the error is a nothing.
func (o *Operator) workflow(ctx context.Context, id int64) (*monitor.WorkflowDetail, error) {
	d, err := o.reader.Workflow(ctx, id)
	if none, ok := errors.AsType[*monitor.NoWorkflowError](err); ok {
		return nil, nothing(none.Error())
	}
	if errors.Is(err, monitor.ErrNotFound) {
		return nil, nothing("there is no such workflow")
	}
	return d, err
}

// sayTasks describes what happens to running tasks, and names tasks that have not begun. It returns the ready ones.
func sayTasks(plan *Plan, d *monitor.WorkflowDetail, becomes string) (ready []string) {
	var unreached []string
	var running []*monitor.WorkflowTask
	for i := range d.List {
		switch t := &d.List[i]; t.Status {
		case "running":
			if t.Type != "parallel" {
				running = append(running, t)
			}
		case "ready":
			ready = append(ready, t.Name)
		case "", "waiting":
			unreached = append(unreached, t.Name)
		}
	}
	addFirst(&plan.Lines, running, "  … and %d more", func(t *monitor.WorkflowTask) TextLine {
		return line(Plain, "  %s  %s: %s", t.Name, t.Says, becomes)
	})
	if len(unreached) > 0 {
		plan.Lines.Add(Note, "  not begun: %s", namesOf(unreached, " and %d more"))
	}
	return ready
}

// planCancelWorkflow plans to cancel a workflow.
func (o *Operator) planCancelWorkflow(ctx context.Context, request Request, plan *Plan) error {
	id := request.Target.ID
	d, err := o.workflow(ctx, id)
	if err != nil {
		return err
	}
	planned, err := o.triage.PlanCancel(ctx, triage.CancelRequest{IDs: []int64{id}})
	if err != nil {
		return err
	}
	if err := sayCancelled(plan, planned); err != nil {
		return err
	}
	becomes := "it runs to its end if it has started, else it is cancelled"
	if d.Cancellation == "cancel_running" {
		becomes = "is stopped"
	}
	sayTasks(plan, d, becomes)
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Note, "Its cancellation_policy decides about running tasks: %s. Cancel tree stops them too.",
		d.Cancellation)
	plan.Lines.Add(Danger, "This cannot be undone. A retry runs all tasks again.")
	plan.Run = does(func(ctx context.Context, reason string) (*triage.CancelReceipt, error) {
		return o.triage.CancelWorkflow(ctx, id, reason)
	}, cancelReceipt)
	return nil
}

// heardLine says whether a workflow waits for the retry of a child.
func heardLine(d *monitor.WorkflowDetail, id int64) TextLine {
	if lifecycle.Status(d.Status).Terminal() {
		return line(Warn,
			"Its workflow %d has ended (%s) and stays so: the work is done again, and nothing follows from it.",
			d.Execution, d.Status)
	}
	for i := range d.List {
		for _, c := range d.List[i].Children {
			switch {
			case c.Execution != id:
			case c.Drawn:
				return line(Warn,
					"Workflow %d has gone on from this end (%s is %s) and does not change that: "+
						"nothing follows from the retry in it.",
					d.Execution, d.List[i].Name, d.List[i].Status)
			default:
				return line(Plain, "Task %s of workflow %d waits for the retry instead.", d.List[i].Name,
					d.Execution)
			}
		}
	}
	return line(Note, "If workflow %d has gone on from this end, it does not change that.", d.Execution)
}

// planAnswer plans to answer an inquiry.
func (o *Operator) planAnswer(ctx context.Context, request Request, plan *Plan) error {
	id := request.Target.ID
	d, err := o.reader.Inquiry(ctx, id)
	if errors.Is(err, monitor.ErrNotFound) {
		return nothing("there is no such inquiry")
	}
	if err != nil {
		return err
	}
	form := d.Form()
	texts := map[string]string{}
	for name, value := range request.Values {
		if field, ok := strings.CutPrefix(name, FieldAnswer); ok {
			texts[field] = value
		}
	}
	response, problems := form.Compose(texts)
	for name := range texts {
		if !slices.ContainsFunc(form.Fields, func(f inquiry.AnswerField) bool { return f.Name == name }) {
			problems = map[string]string{"": "it does not ask for " + name} // Compose would ignore it
		}
	}
	if len(problems) > 0 && d.Open() {
		return invalid(problems)
	}
	if len(problems) > 0 {
		response = []byte("null") // triage refuses the ended inquiry
	}
	answer := triage.AnswerRequest{Inquiry: id, Response: response, As: strings.TrimSpace(request.Values[FieldAs])}
	planned, err := o.triage.PlanAnswer(ctx, answer)
	if err != nil {
		return refusal(form, err)
	}
	plan.Lines.Add(Plain, "%s", planned.Prompt)
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Good, "%s", string(planned.Public))
	if answer.As != "" {
		plan.Lines.Add(Plain, "in the name of %s", answer.As)
	}
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Plain, "%s", follows(planned, d))
	plan.Lines.Add(Warn, "An answer is given once and cannot be changed.")
	plan.Run = does(func(ctx context.Context, reason string) (*triage.AnswerReceipt, error) {
		answer.Note = reason
		return o.triage.Answer(ctx, answer)
	}, func(r *triage.AnswerReceipt) *Receipt {
		return &Receipt{
			Text:  fmt.Sprintf("Inquiry %d is answered.", id),
			Lines: TextLines{line(Plain, "%s", follows(&r.AnswerPlan, d))},
			Next:  delivered(r.Sent), Audits: audits(r.Audit),
		}
	})
	return nil
}

// follows describes the effects of an answer.
func follows(p *triage.AnswerPlan, d *monitor.InquiryDetail) string {
	text := fmt.Sprintf("Execution %d (%s) has completed already and receives the answer.", p.Execution, p.ActionRef)
	if p.Completes {
		text = fmt.Sprintf("Execution %d (%s) completes with it.", p.Execution, p.ActionRef)
	}
	if d.Workflow != nil {
		text += fmt.Sprintf(" Workflow %d (%s) goes on.", *d.Workflow, d.WorkflowRef)
	}
	return text
}

// refusal assigns a refused answer to the field that caused it, or turns it into a nothing.
func refusal(form *inquiry.AnswerForm, err error) error {
	if errors.Is(err, triage.ErrNoInquiry) {
		return nothing(err.Error())
	}
	refused, ok := errors.AsType[*triage.AnswerRefusedError](err)
	switch {
	case !ok:
		return err
	case refused.Reason == triage.AnswerUnfit:
		return invalid(form.ByField(refused.Mistakes))
	case refused.Reason == triage.AnswerNotYours, refused.Reason == triage.AnswerUnknown:
		return &InvalidError{Problems: map[string]string{FieldAs: refused.Text}}
	default:
		return nothing(refused.Text)
	}
}

func invalid(problems map[string]string) error {
	fields := make(map[string]string, len(problems))
	for name, text := range problems {
		if name != "" {
			name = FieldAnswer + name
		}
		fields[name] = text
	}
	return &InvalidError{Problems: fields}
}
