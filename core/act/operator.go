package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
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
	// WithBroker connects a triage to the broker, and returns a function that disconnects it. Nil takes the triage as
	// it is.
	WithBroker func(ctx context.Context) (*triage.Triage, func(), error)
}

// Operator plans and runs acts. It is safe for concurrent use. Triage decides what is allowed: a plan reads without
// locks, and its run checks everything again under locks.
type Operator struct {
	cfg    Config
	triage *triage.Triage
	reader Reader
}

// New makes an Operator.
func New(cfg Config, operator *triage.Triage, reader Reader) *Operator {
	return &Operator{cfg: cfg, triage: operator, reader: reader}
}

// planner fills in the plan of one kind of act. If the act is refused, or if there is nothing to run, it returns a
// *Problem.
type planner func(o *Operator, ctx context.Context, request Request, plan *Plan) error

// Plan describes the changes of a request. It locks and writes nothing.
func (o *Operator) Plan(ctx context.Context, request Request) (*Plan, error) {
	plan, err := o.plan(ctx, request)
	if err != nil {
		return nil, err
	}
	return plan, nil
}

func (o *Operator) plan(ctx context.Context, request Request) (*Plan, error) {
	of, known := acts[request.Kind]
	if !known {
		return nil, fmt.Errorf("%s is not something that can be done from here", request.Kind)
	}
	if unfit := of.Check(request.Values); unfit != nil {
		return nil, unfit
	}
	plan := &Plan{
		Request: request,
		Title:   fmt.Sprintf("%s %s %d", capital(request.Kind.Verb()), request.Kind.Of(), request.Target.ID),
	}
	planner := of.plan
	switch {
	case len(request.Targets) == 0 || of.whole:
	case request.Named:
		planner = (*Operator).planNamed
	default:
		planner = (*Operator).planMarked
	}
	err := o.problem(&request, planner(o, ctx, request, plan), false)
	if why, ok := errors.AsType[*Problem](err); ok && why.Kind <= Missing {
		plan.Nothing, plan.Problem, err = why.Text, why, nil
	}
	return plan, err
}

// Run runs a plan of this operator once. progress may be nil.
func (o *Operator) Run(
	ctx context.Context, plan *Plan, reason string, progress *Progress,
) (*Receipt, error) {
	if plan.Run == nil {
		return nil, errors.New("this plan cannot be run")
	}
	if progress != nil {
		ctx = triage.WithProgress(ctx, progress.Set)
	}
	receipt, err := plan.Run(ctx, reason)
	if receipt != nil && receipt.Sent.Messages > 0 && !o.triage.Publishes() {
		receipt.Lines.Add(Note, "%s in the outbox; a running engine sends within seconds what it finds there",
			phrase.Plural(receipt.Sent.Messages, "message is", "messages are"))
	}
	return receipt, o.problem(&plan.Request, err, true)
}

// Do plans and runs what a client asked for directly.
func (o *Operator) Do(ctx context.Context, request Request, reason string) (*Receipt, error) {
	request.Direct = true
	plan, err := o.Plan(ctx, request)
	switch {
	case err != nil:
		return nil, err
	case plan.Problem != nil && plan.Problem.Kind != Unchanged:
		return nil, plan.Problem
	}
	return o.Run(ctx, plan, reason, nil)
}

// planNamed plans an act on rows that the operator named: each is planned and run in its turn, in the order of the
// first requests. A row that cannot be changed is a result with its problem.
func (o *Operator) planNamed(_ context.Context, request Request, plan *Plan) error {
	plan.Run = func(ctx context.Context, reason string) (*Receipt, error) {
		receipt, run := &Receipt{}, triage.Run{}
		running, stop := context.WithCancel(ctx)
		defer stop()
		if request.Kind.Of() == "execution" { // retries join their queues in the order of the first requests
			slices.SortFunc(request.Targets, func(a, b Target) int { return cmp.Compare(a.ID, b.ID) })
		}
		for _, target := range request.Targets {
			one := Request{
				Kind: request.Kind, Target: target, Values: request.Values, Direct: true, Anyway: request.Anyway,
			}
			run.Steps = append(run.Steps, triage.Step{
				Rows: []int64{target.ID},
				Do: func(ctx context.Context, _ string) (triage.Outcome, error) {
					r, err := o.Do(ctx, one, reason)
					receipt.Results = append(receipt.Results, Result{ID: target.ID, Receipt: r, Err: err})
					if err != nil {
						if p, _ := errors.AsType[*Problem](err); p != nil && p.Kind >= Denied || store.IsAway(err) {
							stop() // the other rows would fail too
						}
						return triage.Outcome{}, err
					}
					receipt.Sent.Rows = append(receipt.Sent.Rows, r.Sent.Rows...)
					return triage.Outcome{Done: 1, Audits: r.Audits}, nil
				},
			})
		}
		done, err := o.triage.Run(running, run, reason)
		if err != nil {
			return nil, err
		}
		receipt.Audits, receipt.Left, receipt.Partly = done.Audits, done.Left, done.Done < done.Planned
		receipt.Planned, receipt.Remaining = done.Planned, len(done.Left)
		return receipt, nil
	}
	return nil
}

// does makes the run of a plan from an act of triage and its receipt.
func does[R any](do func(ctx context.Context, reason string) (*R, error), says func(r *R) *Receipt) Run {
	return func(ctx context.Context, reason string) (*Receipt, error) {
		r, err := do(ctx, reason)
		if r == nil {
			return nil, err
		}
		receipt := says(r)
		receipt.Data = r
		if p := receipt.Problem; p != nil && err == nil && p.Kind != Unchanged && p.Kind < Incomplete {
			err, receipt.Problem = p, nil
		}
		return receipt, err
	}
}

// withBroker runs an act with a connection to the broker.
func withBroker[R any](ctx context.Context, o *Operator, do func(*triage.Triage) (*R, error)) (*R, error) {
	if o.cfg.WithBroker == nil {
		return do(o.triage)
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

// Word confirms an act on n rows that a filter has chosen; empty if a key, or a yes, is enough.
func Word(kind Kind, n int) string { return wordFor(n, "%s %d", kind.Verb(), n) }

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

// audits lists an audit row, if any.
func audits(id int64) []int64 {
	if id == 0 {
		return nil
	}
	return []int64{id}
}

// OnIDs requests an act on rows that the operator named.
func OnIDs(kind Kind, ids ...int64) Request {
	request := Request{Kind: kind}
	request.OnIDs(ids)
	return request
}

// OnIDs has the request act on rows that the operator named.
func (r *Request) OnIDs(ids []int64) {
	of := ofIDs(r.Kind, ids...)
	r.Target, r.Targets, r.Named = of.Target, of.Targets, true
}

// ofIDs requests an act on rows by their ids.
func ofIDs(kind Kind, ids ...int64) *Request {
	name := phrase.Plural(len(ids), kind.Of(), phrase.Nouns(2, kind.Of()))
	request := &Request{Kind: kind, Target: Target{Name: name}}
	if len(ids) == 1 {
		request.Target.ID = ids[0]
	}
	for _, id := range ids {
		request.Targets = append(request.Targets, Target{ID: id})
	}
	return request
}
