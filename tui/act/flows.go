package act

import (
	"strconv"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
)

// The kinds of acts on workflows and questions.
const (
	PauseWorkflow  Kind = "workflow.pause"
	ResumeWorkflow Kind = "workflow.resume"
	CancelWorkflow Kind = "workflow.cancel"
	RetryWorkflow  Kind = "workflow.retry"
	RetryTask      Kind = "task.retry"
	AnswerInquiry  Kind = "inquiry.respond"
)

// Names of the fields of an answer.
const (
	// FieldAs is the login in whose name an answer is given.
	FieldAs = "as"
	// FieldAnswer stands before the name of each value of an answer.
	FieldAnswer = "answer."
)

// InvalidError says what is wrong with what was written into a form. What concerns no
// field has no name.
type InvalidError struct {
	Problems map[string]string
}

// Error says that something is wrong.
func (e *InvalidError) Error() string {
	if text := e.Problems[""]; text != "" {
		return text
	}
	return "what was written does not fit"
}

// ForWorkflow is what may be done with a workflow.
func ForWorkflow(w *monitor.Workflow) Menu {
	var over, running, pause, resume string
	if attune.Status(w.Status).Terminal() {
		over = "it has ended: " + w.Status
	} else {
		running = "it has not ended: " + w.Status
	}
	pause, resume = over, over
	switch {
	case over != "":
	case w.Paused:
		pause = "it is paused"
	case w.PausedAbove != 0:
		resume = "it is paused with workflow " + strconv.FormatInt(w.PausedAbove, 10) + " above it, and goes on with that"
	default:
		resume = "it is not paused"
	}
	return Menu{
		Target: Target{Name: "workflow " + strconv.FormatInt(w.Execution, 10) + " " + w.ActionRef, ID: w.Execution},
		Items: []Item{
			{Kind: PauseWorkflow, Key: "p", Label: "pause", Help: "start nothing more until it is resumed", Not: pause},
			{Kind: ResumeWorkflow, Key: "u", Label: "resume", Help: "go on", Not: resume},
			{Kind: RetryWorkflow, Key: "r", Label: "begin anew", Help: "all of it, as a new execution", Not: running},
			{Kind: CancelWorkflow, Key: "c", Label: "cancel", Help: "start nothing more and end it", Not: over},
			{Kind: CancelTree, Key: "t", Label: "cancel tree", Help: "and everything that it has started"},
		},
	}
}

// ForTask is what may be done with one child of a workflow.
func ForTask(t *monitor.WorkflowTask, c *monitor.WorkflowChild) Menu {
	menu := ForExecution(&monitor.Execution{ID: c.Execution, ActionRef: c.ActionRef, Status: c.Status})
	menu.Target.Name = "task " + explain.ChildName(t, c) + ", execution " + strconv.FormatInt(c.Execution, 10)
	menu.Items[0].Kind = RetryTask
	return menu
}

// ForInquiry is what may be done with a question. The form is what its answer has to
// look like.
func ForInquiry(d *monitor.InquiryDetail, form *inquiry.AnswerForm) Menu {
	answer := Item{Kind: AnswerInquiry, Key: "a", Label: "answer", Help: "the first answer counts", About: d.Prompt}
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
	for i := range form.Fields {
		answer.Fields = append(answer.Fields, answerField(&form.Fields[i]))
	}
	if d.AssignedTo != nil {
		answer.Fields = append(answer.Fields, Field{
			Name: FieldAs, Label: "in the name of", Value: d.Assignee, Hint: "the login of the one it is assigned to",
		})
	}
	return Menu{
		Target: Target{Name: "inquiry " + strconv.FormatInt(d.ID, 10), ID: d.ID},
		Items:  []Item{answer},
	}
}

func answerField(f *inquiry.AnswerField) Field {
	hint := f.Words
	if f.Required {
		hint += "; required"
	}
	if f.About != "" {
		hint += ": " + f.About
	}
	return Field{
		Name: FieldAnswer + f.Name, Label: f.Name, Value: f.Default, Hint: hint, Check: f.Check, Secret: f.Secret,
		Choices: f.Choices, Optional: !f.Required, Long: true,
	}
}
