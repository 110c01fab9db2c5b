package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// AnswerInquiry answers a question.
const AnswerInquiry Kind = "inquiry.respond"

var _ = declare(AnswerInquiry, Act{
	Key: "a", Label: "answer", Help: "the first answer counts", Many: "if the answer fits; the first answer counts",
	Fields: []Field{
		{Name: FieldResponse, Type: Document, HTTP: true, Required: true},
		{Name: FieldAs, Usage: "the login of the identity that answers", HTTP: true},
	},
	Command: Command{ // the command asks for the answer itself, since answers may be secret
		Group: "inquiry", Use: "respond ID", Takes: TakesID, Own: true, Note: "the reason, for the audit",
	},
	Route: Route{Path: "inquiries/{id}/respond"}, offers: []offer{in("inquiry", 1, answerFits)},
	plan: (*Operator).planAnswer,
})

// asked is an inquiry with the form of its answer.
type asked struct {
	*monitor.InquiryDetail

	form *inquiry.AnswerForm
}

// answerFits fills the form of an answer.
func answerFits(d asked, answer *Item) {
	answer.About = d.Prompt
	switch d.Status {
	case monitor.InquiryPending:
	case monitor.InquiryResponded:
		answer.Not = "it was answered already"
		if d.Responder != "" {
			answer.Not += " by " + d.Responder
		}
	default:
		answer.Not = "it is over: " + d.Status
	}
	for _, f := range d.form.Fields {
		hint := f.Words
		if f.Required {
			hint += "; required"
		}
		if f.About != "" {
			hint += ": " + f.About
		}
		answer.Fields = append(answer.Fields, Field{
			Name: FieldAnswer + f.Name, Label: f.Name, Value: f.Default, Hint: hint, Check: f.Check, Secret: f.Secret,
			Choices: f.Choices, Optional: !f.Required, Long: true,
		})
	}
	if d.AssignedTo != nil {
		answer.Fields = append(answer.Fields, Field{
			Name: FieldAs, Label: "in the name of", Value: d.Assignee, Hint: "the login of the one it is assigned to",
		})
	}
}

// planAnswer plans to answer an inquiry.
func (o *Operator) planAnswer(ctx context.Context, request Request, plan *Plan) error {
	id := request.Target.ID
	response, read := request.Values[FieldResponse]
	answer := triage.AnswerRequest{
		Inquiry: id, Response: []byte(response), As: request.value(FieldAs), Note: request.Reason,
	}
	if !read || !request.Direct {
		d, err := o.reader.Inquiry(ctx, id)
		if err != nil {
			return err
		}
		form := d.Form()
		if !read {
			if answer.Response, err = compose(form, d, request.Values); err != nil {
				return err
			}
		}
		planned, err := o.triage.PlanAnswer(ctx, answer)
		switch {
		case err != nil && read:
			return err
		case err != nil:
			return fieldProblem(form, id, err)
		}
		plan.Data = planned
		sayAnswer(plan, planned, d)
	}
	plan.Run = does(func(ctx context.Context, reason string) (*triage.AnswerReceipt, error) {
		answer.Note = reason
		return o.triage.Answer(ctx, answer)
	}, func(r *triage.AnswerReceipt) *Receipt {
		return &Receipt{
			Text:   fmt.Sprintf("Inquiry %d is answered.", id),
			Lines:  TextLines{line(Good, "%s", string(r.Public)), line(Plain, "%s", follows(&r.AnswerPlan))},
			Audits: audits(r.Audit), Sent: r.Sent,
		}
	})
	return nil
}

func sayAnswer(plan *Plan, planned *triage.AnswerPlan, d *monitor.InquiryDetail) {
	plan.Lines.Add(Plain, "%s", planned.Prompt)
	plan.Lines.Add(Plain, "")
	plan.Lines.Add(Good, "%s", string(planned.Public))
	if planned.As != "" {
		plan.Lines.Add(Plain, "in the name of %s", planned.As)
	}
	plan.Lines.Add(Plain, "")
	text := follows(planned)
	if d.Workflow != nil {
		text += fmt.Sprintf(" Workflow %d (%s) goes on.", *d.Workflow, d.WorkflowRef)
	}
	plan.Lines.Add(Plain, "%s", text)
	plan.Lines.Add(Warn, "An answer is given once and cannot be changed.")
}

// compose makes the response of the values of a form.
func compose(form *inquiry.AnswerForm, d *monitor.InquiryDetail, values map[string]string) ([]byte, error) {
	texts := map[string]string{}
	for name, value := range values {
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
	switch {
	case len(problems) > 0 && d.Open():
		return nil, invalid(problems)
	case len(problems) > 0:
		return []byte("null"), nil // triage refuses the ended inquiry
	}
	return response, nil
}

// follows describes the effects of an answer.
func follows(p *triage.AnswerPlan) string {
	if p.Completes {
		return fmt.Sprintf("Execution %d (%s) completes with it.", p.Execution, p.ActionRef)
	}
	return fmt.Sprintf("Execution %d (%s) has completed already and receives the answer.", p.Execution, p.ActionRef)
}

// answerProblem explains a refused answer.
func answerProblem(id int64, refused *triage.AnswerRefusedError) *Problem {
	p := &Problem{Kind: Refused, Text: refused.Error()}
	switch refused.Reason {
	case triage.AnswerUnfit:
		p.Kind, p.Instead = Unfit, fmt.Sprintf("`attune-executor inquiry show %d` shows what is asked for", id)
	case triage.AnswerNotYours:
		p.Kind, p.Instead = Forbidden, "--as LOGIN answers in the name of that identity"
	case triage.AnswerUnknown:
		p.Kind = Forbidden
	}
	return p
}

// fieldProblem assigns a refused answer to the field that caused it.
func fieldProblem(form *inquiry.AnswerForm, id int64, err error) error {
	refused, ok := errors.AsType[*triage.AnswerRefusedError](err)
	switch {
	case !ok:
		return err
	case refused.Reason == triage.AnswerUnfit:
		return invalid(form.ByField(refused.Mistakes))
	case refused.Reason == triage.AnswerNotYours, refused.Reason == triage.AnswerUnknown:
		return &InvalidError{Problems: map[string]string{FieldAs: refused.Text}}
	}
	p := answerProblem(id, refused)
	p.Text = refused.Text
	return p
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
