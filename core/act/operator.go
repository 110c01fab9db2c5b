// Package operator plans and runs the dashboard's acts through core/triage, and describes them in plans and receipts.
// It has no rules of its own: triage decides what is allowed. A plan reads without locks; running it checks
// everything again under locks.
package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
)

// Reader reads additional facts for plans; *alerting.Reader is one.
type Reader interface {
	Execution(ctx context.Context, id int64) (*monitor.ExecutionDetail, error)
	Attempts(ctx context.Context, id int64) ([]monitor.Attempt, error)
	DeadLetter(ctx context.Context, id int64) (*monitor.LedgerDetail, error)
	Workflow(ctx context.Context, execution int64) (*monitor.WorkflowDetail, error)
	Inquiry(ctx context.Context, id int64) (*monitor.InquiryDetail, error)
	DeadLettersByID(ctx context.Context, ids []int64) ([]monitor.LedgerEntry, error)
	Broker(ctx context.Context) (*monitor.Broker, error)
	Route(ctx context.Context, exchange, key string) (*monitor.Route, error)
	Executions(ctx context.Context, filter monitor.ExecutionFilter, cursor int64) (*monitor.Executions, error)
	Queues(ctx context.Context, filter monitor.QueueFilter) (*monitor.Queues, error)
}

// Config configures an Operator.
type Config struct {
	// WithBroker connects a triage to the broker, and returns a function that disconnects it. Nil refuses acts that
	// need the broker.
	WithBroker func(ctx context.Context) (*triage.Triage, func(), error)
	// Explain explains a database error: ran is false if a plan failed, true if a run failed. Nil keeps errors as
	// they are.
	Explain func(err error, ran bool) error
}

// Operator plans and runs acts. It is safe for concurrent use.
type Operator struct {
	cfg    Config
	triage *triage.Triage
	reader Reader
}

// New makes an Operator.
func New(cfg Config, operator *triage.Triage, reader Reader) *Operator {
	return &Operator{cfg: cfg, triage: operator, reader: reader}
}

// planner fills in the plan of one kind of act. If there is nothing to run, it returns a nothing.
type planner func(o *Operator, ctx context.Context, request Request, plan *Plan) error

// nothing is an error that says why there is nothing to run.
type nothing string

func (n nothing) Error() string { return string(n) }

var planners = map[Kind]planner{
	CancelExecution:       (*Operator).planCancel,
	CancelTree:            (*Operator).planCancel,
	RetryExecution:        (*Operator).planRetry,
	FrontExecution:        (*Operator).planMove,
	LaneExecution:         (*Operator).planMove,
	PutBackExecutions:     (*Operator).planMove,
	PauseQueue:            (*Operator).planOverride,
	ResumeQueue:           (*Operator).planOverride,
	LimitQueue:            (*Operator).planOverride,
	ResetQueue:            (*Operator).planOverride,
	ClearQueue:            (*Operator).planClear,
	RepairQueue:           (*Operator).planRepair,
	CordonWorker:          (*Operator).planWorker,
	UncordonWorker:        (*Operator).planWorker,
	DrainWorker:           (*Operator).planWorker,
	ForgetWorker:          (*Operator).planWorker,
	PauseWorkflow:         (*Operator).planPause,
	ResumeWorkflow:        (*Operator).planPause,
	CancelWorkflow:        (*Operator).planCancelWorkflow,
	RetryWorkflow:         (*Operator).planRetry,
	RetryTask:             (*Operator).planRetry,
	AnswerInquiry:         (*Operator).planAnswer,
	RequeueDeadLetter:     (*Operator).planRequeue,
	DiscardDeadLetter:     (*Operator).planDiscard,
	DiscardAllDeadLetters: (*Operator).planDiscardAll,
	SendDeadLetters:       (*Operator).planSend,
	UndoDeadLetters:       (*Operator).planUndo,
	ReturnDeadLetters:     (*Operator).planReturn,
	TakeDeadLetters:       (*Operator).planTake,
	PurgeBroker:           (*Operator).planPurgeBroker,
}

// Plan describes the changes of a request. It locks and writes nothing.
func (o *Operator) Plan(ctx context.Context, request Request) (*Plan, error) {
	plan, err := o.plan(ctx, request)
	if err != nil {
		return nil, o.explain(err, false)
	}
	return plan, nil
}

func (o *Operator) plan(ctx context.Context, request Request) (*Plan, error) {
	planner, known := planners[request.Kind]
	if !known {
		return nil, fmt.Errorf("%s is not something that can be done from here", request.Kind)
	}
	of := strings.ReplaceAll(request.Kind.Of(), "_", " ")
	// Dead letters and moves have plans of their own for many.
	if len(request.Targets) > 0 && of != "dead letter" && moves[request.Kind] == "" {
		planner = (*Operator).planMarked
	}
	plan := &Plan{
		Request: request, Title: fmt.Sprintf("%s %s %d", capital(request.Kind.Verb()), of, request.Target.ID),
	}
	err := planner(o, ctx, request, plan)
	if why, ok := errors.AsType[nothing](err); ok {
		plan.Nothing, plan.Run, err = string(why), nil, nil
	}
	return plan, err
}

// Run runs a plan of this operator once.
func (o *Operator) Run(
	ctx context.Context, plan *Plan, reason string, progress *Progress,
) (*Receipt, error) {
	if plan.Run == nil {
		return nil, errors.New("this plan cannot be run")
	}
	receipt, err := plan.Run(triage.WithProgress(ctx, progress.Set), reason)
	return receipt, o.explain(err, true)
}

// explain explains an error. A refusal explains itself.
func (o *Operator) explain(err error, ran bool) error {
	_, invalid := errors.AsType[*InvalidError](err)
	_, locked := errors.AsType[*triage.LockedError](err)
	if err == nil || invalid || locked || triage.Refused(err) || o.cfg.Explain == nil {
		return err
	}
	return o.cfg.Explain(err, ran)
}

// does makes the run of a plan from an act of triage and its receipt.
func does[R any](do func(ctx context.Context, reason string) (*R, error), says func(r *R) *Receipt) Run {
	return func(ctx context.Context, reason string) (*Receipt, error) {
		r, err := do(ctx, reason)
		if r == nil {
			return nil, err
		}
		return says(r), err
	}
}

// withBroker runs an act with a connection to the broker.
func withBroker[R any](ctx context.Context, o *Operator, do func(*triage.Triage) (*R, error)) (*R, error) {
	if o.cfg.WithBroker == nil {
		return nil, triage.ErrNoBroker
	}
	connected, end, err := o.cfg.WithBroker(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return do(connected)
}

// many is the number of rows from which a plan requires a word instead of a key.
const many = 50

// wordFor is the word for n rows, or empty.
func wordFor(n int, format string, args ...any) string {
	if n > many {
		return fmt.Sprintf(format, args...)
	}
	return ""
}

// maxNamed is the largest number of rows that a plan names.
const maxNamed = 8

// addFirst adds a line for each of the first rows, and counts the rest.
func addFirst[T any](lines *TextLines, list []T, more string, say func(T) TextLine) {
	for _, one := range list[:min(len(list), maxNamed)] {
		*lines = append(*lines, say(one))
	}
	if n := len(list) - maxNamed; n > 0 {
		lines.Add(Note, more, n)
	}
}

// namesOf lists the first names; more counts the rest.
func namesOf(names []string, more string) string {
	if n := len(names) - maxNamed; n > 0 {
		if strings.Contains(more, "%d") {
			more = fmt.Sprintf(more, n)
		}
		return strings.Join(names[:maxNamed], ", ") + more
	}
	return strings.Join(names, ", ")
}

func line(tone Tone, format string, args ...any) TextLine {
	return TextLine{Tone: tone, Text: fmt.Sprintf(format, args...)}
}

// outcome counts the planned rows by their results.
func outcome(done, planned int, word string, others ...other) string {
	text := fmt.Sprintf("%d of %d %s", done, planned, word)
	for _, o := range others {
		if o.n > 0 {
			text += fmt.Sprintf(", %d %s", o.n, o.word)
		}
	}
	return text + "."
}

// other is a number of rows with another result.
type other struct {
	n    int
	word string
}

// sentence adds a capital and a full stop.
func sentence(text string) string {
	text = capital(strings.TrimSpace(text))
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// delivered describes the delivery of messages.
func delivered(sent triage.Sent) string {
	if sent.Messages == 0 {
		return ""
	}
	return phrase.Plural(sent.Messages, "message is", "messages are") +
		" in the outbox; a running engine sends within seconds what it finds there"
}

// audits lists an audit row, if any.
func audits(id int64) []int64 {
	if id == 0 {
		return nil
	}
	return []int64{id}
}
