// Package operator carries out the dashboard's acts through core/triage, and says
// their plans and receipts in words. It holds no rules of its own: what may be
// done, and how, is triage's; what a plan says was read, and is decided again
// under locks when it is run.
package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/tui/act"
)

// Reader reads what plans say beyond what triage plans; *alerting.Reader is one.
type Reader interface {
	Execution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error)
	Attempts(ctx context.Context, id int64) ([]monitor.Attempt, error)
	Letter(ctx context.Context, id int64) (*monitor.LedgerDetail, error)
	Workflow(ctx context.Context, execution int64) (*monitor.WorkflowDetail, error)
	Inquiry(ctx context.Context, id int64) (*monitor.InquiryDetail, error)
	Letters(ctx context.Context, ids []int64) ([]monitor.LedgerEntry, error)
	Broker(ctx context.Context) (*monitor.Broker, error)
	Route(ctx context.Context, exchange, key string) (*monitor.Route, error)
	Executions(ctx context.Context, filter monitor.ExecutionFilter, cursor int64) (*monitor.Executions, error)
	Queues(ctx context.Context, filter monitor.QueueFilter) (*monitor.Queues, error)
}

// Config is what an Operator depends on.
type Config struct {
	// WithBroker makes a triage that has a broker, for the acts that need one, and
	// what ends it. Nil refuses those acts.
	WithBroker func(ctx context.Context) (*triage.Triage, func(), error)
	// Pace is the time between two rows of an act on many; zero means 20 a second.
	Pace time.Duration
	// Explain says of an error of the database what it means for what was asked for:
	// for a plan that was not made, or, if ran is true, for what a run has left undone.
	// Nil leaves errors as they are.
	Explain func(err error, ran bool) error
}

// Operator acts. It is safe for concurrent use.
type Operator struct {
	cfg    Config
	triage *triage.Triage
	reader Reader
}

// New makes an Operator.
func New(cfg Config, operator *triage.Triage, reader Reader) *Operator {
	return &Operator{cfg: cfg, triage: operator, reader: reader}
}

// run carries out what was planned.
type run func(ctx context.Context, reason string) (*act.Receipt, error)

// planner makes the plan of one kind of act.
type planner func(o *Operator, ctx context.Context, order act.Order) (*act.Plan, error)

var planners = map[act.Kind]planner{
	act.CancelExecution:   (*Operator).planCancel,
	act.CancelTree:        (*Operator).planCancel,
	act.RetryExecution:    (*Operator).planRetry,
	act.PauseQueue:        (*Operator).planWord,
	act.ResumeQueue:       (*Operator).planWord,
	act.LimitQueue:        (*Operator).planWord,
	act.ResetQueue:        (*Operator).planWord,
	act.ClearQueue:        (*Operator).planClear,
	act.RepairQueue:       (*Operator).planRepair,
	act.CordonWorker:      (*Operator).planWorker,
	act.UncordonWorker:    (*Operator).planWorker,
	act.DrainWorker:       (*Operator).planWorker,
	act.ForgetWorker:      (*Operator).planWorker,
	act.RequeueLetter:     (*Operator).planRequeue,
	act.DiscardLetter:     (*Operator).planDiscard,
	act.DiscardAllLetters: (*Operator).planDiscardAll,
	act.PauseWorkflow:     (*Operator).planPause,
	act.ResumeWorkflow:    (*Operator).planPause,
	act.CancelWorkflow:    (*Operator).planCancelWorkflow,
	act.RetryWorkflow:     (*Operator).planRetryWorkflow,
	act.RetryTask:         (*Operator).planRetryTask,
	act.AnswerInquiry:     (*Operator).planAnswer,
	act.SendLetters:       (*Operator).planSend,
	act.UndoLetters:       (*Operator).planUndo,
	act.ReturnLetters:     (*Operator).planReturn,
	act.TakeLetters:       (*Operator).planTake,
	act.PurgeBroker:       (*Operator).planPurgeBroker,
}

// Plan says what an order would change. Nothing is locked or written.
func (o *Operator) Plan(ctx context.Context, order act.Order) (*act.Plan, error) {
	plan, known := planners[order.Kind]
	if _, many := manyVerbs[order.Kind]; many && len(order.Targets) > 0 {
		plan = (*Operator).planMany
	}
	if !known {
		return nil, fmt.Errorf("%s is not something that can be done from here", order.Kind)
	}
	made, err := plan(o, ctx, order)
	if err != nil {
		return nil, o.plain(err, false)
	}
	made.Order = order
	switch order.Kind {
	case act.RequeueLetter, act.DiscardLetter, act.SendLetters, act.UndoLetters, act.ReturnLetters:
		made.Letters = idsOf(lettersOf(order))
	default:
	}
	return made, nil
}

// Run carries out a plan of this operator.
func (o *Operator) Run(ctx context.Context, plan *act.Plan, reason string, progress *act.Progress) (*act.Receipt, error) {
	carryOut, ok := plan.Handle.(run)
	if !ok {
		return nil, errors.New("this plan cannot be run")
	}
	receipt, err := carryOut(triage.WithProgress(ctx, progress.Set), reason)
	if err != nil {
		return receipt, o.plain(err, true)
	}
	return receipt, nil
}

// plain takes away from an error what was being done when a target turned out not
// to be there: it says nothing more.
func (o *Operator) plain(err error, ran bool) error {
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		return target
	}
	if refused, ok := errors.AsType[*triage.WorkerRefusedError](err); ok {
		return refused
	}
	if refused, ok := errors.AsType[*triage.AnswerRefusedError](err); ok {
		return refused
	}
	if invalid, ok := errors.AsType[*act.InvalidError](err); ok {
		return invalid
	}
	if locked, ok := errors.AsType[*triage.LockedError](err); ok {
		return locked
	}
	if o.cfg.Explain == nil {
		return err
	}
	return o.cfg.Explain(err, ran)
}

// many is the number from which a plan asks for a word instead of a key.
const many = 50

// wordFor asks for a word where many rows are touched.
func wordFor(n int, word string) string {
	if n > many {
		return word
	}
	return ""
}

// maxNamed bounds how many rows a plan names one by one.
const maxNamed = 8

func line(tone act.Tone, format string, args ...any) act.Line {
	return act.Line{Tone: tone, Text: fmt.Sprintf(format, args...)}
}

// counted writes a number with the word for it.
func counted[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// outcome counts what became of so many planned rows, without what is zero.
func outcome(done, planned int, word string, others ...other) string {
	counts := []string{fmt.Sprintf("%d of %d %s", done, planned, word)}
	for _, o := range others {
		if o.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", o.n, o.word))
		}
	}
	return strings.Join(counts, ", ") + "."
}

// other is how many rows came to another end, and which.
type other struct {
	n    int
	word string
}

// sentence writes a text with a capital and a stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// delivered says what becomes of the messages of an act.
func delivered(sent triage.Sent) string {
	if sent.Messages == 0 {
		return ""
	}
	return counted(sent.Messages, "message is", "messages are") + " in the outbox; a running engine sends within seconds what it finds there"
}

// audits is the list of the audit rows of an act.
func audits(id int64) []int64 {
	if id == 0 {
		return nil
	}
	return []int64{id}
}
