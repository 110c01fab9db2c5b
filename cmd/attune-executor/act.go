package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/triage"
)

// commandPace is the time between two steps of a command: at most 200 a second.
const commandPace = 5 * time.Millisecond

// operator is a client that acts for an operator.
type operator struct {
	*client
	*act.Operator

	triage    *triage.Triage
	publisher *publisher // nil: nothing is published
	action    string     // of the act on queues
}

// acting is how a command carries out an act.
type acting struct {
	act.Command
	planFlags
	waitFlags
}

// connects reports whether the command needs the broker. The plan of an act without rows reads them there.
func (how *acting) connects() bool {
	return how.Connects && (!how.dryRun || how.Takes == act.TakesNothing)
}

// withOperator connects and runs an act. A publisher works without its broker too.
func (a *app) withOperator(cmd *cobra.Command, how acting, run func(o *operator) error) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	c.acts = true
	keys, err := secret.NewKeyring(c.cfg.Security.EncryptionKey)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	cfg := triage.Config{
		Actor: triage.LocalActor(), Source: "attune-executor", Pace: commandPace,
		HeartbeatStaleAfter: c.cfg.Executor.StaleAfter(), WithoutStats: !c.cfg.Executor.Queue.EnableMetrics,
	}
	o := &operator{client: c}
	if how.Sends && !how.dryRun || how.connects() {
		if o.publisher, err = c.openPublisher(cmd.Context(), cmd.CommandPath()); err != nil {
			return err
		}
		defer o.publisher.close()
		o.triage = triage.New(cfg, c.store, o.publisher.relay).With(o.publisher.link).WithKeyring(keys)
	} else {
		o.triage = triage.New(cfg, c.store, nil).WithKeyring(keys)
	}
	if !how.Ledger {
		o.Operator = act.New(act.Config{}, o.triage, c.monitor())
		return run(o)
	}
	_, err = ofLedger(c, func(m *monitor.Monitor) (struct{}, error) {
		o.Operator = act.New(act.Config{}, o.triage, alerting.NewReader(m, c.cfg.Alerts, nil))
		return struct{}{}, run(o)
	})
	return err
}

// act carries out an act: the plan and its confirmation, the run with its progress, and the receipt.
func (o *operator) act(request act.Request, how acting) error {
	o.action = request.Target.Action
	plan, err := o.planned(request, how)
	if plan == nil {
		return err
	}
	ctx, stop := o.start(how.Noun)
	defer stop()
	receipt, err := o.Run(ctx, plan, request.Reason, nil)
	switch {
	case receipt == nil:
		return o.problem(err)
	case !how.wait || err != nil:
		return o.finish(ctx, request, receipt, err, how)
	}
	if drained, ok := receipt.Data.(*triage.WorkerReceipt); ok {
		var w page
		receiptPage(&w, receipt)
		text, _, _ := strings.Cut(w.String(), "\n")
		o.notef("%s", text)
		return o.awaitDrained(ctx, drained, how.timeout)
	}
	return o.awaitStops(ctx, receipt, how.timeout)
}

// planned plans a request, and shows the plan of a dry run or asks for its confirmation. Without a plan there is
// nothing to run.
func (o *operator) planned(request act.Request, how acting) (*act.Plan, error) {
	request.Direct = !how.dryRun && !how.Asks
	plan, err := o.Plan(o.cmd.Context(), request)
	switch {
	case err != nil:
		return nil, o.problem(err)
	case how.dryRun && plan.Data != nil:
		view := with(plan.Data, "dry_run", true)
		if _, says := plan.Data.(*triage.RepairReceipt); says { // that it is one
			view = with(plan.Data, "delivery", deliveryNone)
		}
		err := o.show(view, func(w *page) { planPage(w, plan) })
		if err == nil && plan.Wrong != nil {
			err = o.problem(plan.Wrong)
		}
		return nil, err
	case plan.Problem != nil && (how.dryRun || plan.Problem.Kind != act.Unchanged):
		return nil, o.problem(plan.Problem)
	case !how.Asks || plan.Nothing != "":
		return plan, nil
	}
	var w page
	planPage(&w, plan)
	if err := o.confirm(how.planFlags, newQuestion(plan.Title, &w, plan.Word)); err != nil {
		return nil, err
	}
	return plan, nil
}

func planPage(w *page, plan *act.Plan) {
	w.row(plan.Title)
	for _, line := range plan.Lines {
		w.row(line.Text)
	}
	if plan.Nothing != "" {
		w.row("Nothing to do: " + plan.Nothing)
	}
}

// receiptPage shows a receipt: its sentence with its audits, its lines, and what to do next.
func receiptPage(w *page, receipt *act.Receipt) {
	text := receipt.Text
	if len(receipt.Audits) > 0 {
		text += " (" + act.AuditText(receipt.Audits) + ")"
	}
	w.row(text)
	for _, line := range receipt.Lines {
		w.row("  " + line.Text)
	}
	if receipt.Next != "" {
		w.row("  " + receipt.Next)
	}
	if receipt.Undo != nil {
		for _, command := range receipt.Undo.Commands("") {
			w.row("undo: `attune-executor " + act.Shell(command...) + "`")
		}
	}
}

// finish shows a receipt, also that of a part, and returns the error of the command.
func (o *operator) finish(
	ctx context.Context, request act.Request, receipt *act.Receipt, err error, how acting,
) error {
	view, problems := receipt.Data, []error(nil)
	if request.Named && receipt.Data == nil {
		view, problems = o.results(receipt, how)
	}
	if how.Sends {
		view = with(view, "delivery", o.delivery(ctx, receipt.Sent))
	}
	_, refused := errors.AsType[*act.Problem](err)
	printErr := o.show(view, func(w *page) {
		if receipt.Data != nil && !(refused && len(request.All()) == 1) { // the error says it all
			receiptPage(w, receipt)
		}
		for _, one := range receipt.Results {
			if one.Err == nil {
				receiptPage(w, one.Receipt)
			}
		}
	})
	switch {
	case printErr != nil:
		return printErr
	case ctx.Err() != nil && receipt.Remaining > 0:
		return failedErrorf("interrupted with %d of %s left: run the same command again", receipt.Remaining,
			count(receipt.Planned, how.Noun))
	case err != nil:
		return o.problem(err)
	case receipt.Problem != nil:
		return o.problem(receipt.Problem)
	}
	return o.verdict(len(request.Targets), receipt.Remaining, how.Noun, how.Done, problems)
}

// results are the receipts and the refusals of named rows.
func (o *operator) results(receipt *act.Receipt, how acting) (view any, problems []error) {
	receipts, refused := []any{}, []refusal{}
	for _, one := range receipt.Results {
		if one.Err == nil {
			receipts = append(receipts, one.Receipt.Data)
			continue
		}
		problem := o.problem(one.Err)
		refused, problems = append(refused, refusal{one.ID, problem.Error()}), append(problems, problem)
	}
	view = with(map[string]any{how.Results: receipts}, "refused", refused)
	if len(receipt.Left) > 0 {
		view = with(view, "left", receipt.Left)
	}
	return view, problems
}

// exitCodes are those of problems; the others mean that the act failed.
var exitCodes = map[act.ProblemKind]int{
	act.Unchanged: exitRefused, act.Refused: exitRefused, act.Conflict: exitRefused, act.Forbidden: exitRefused,
	act.Invalid: exitUsage,
	act.Unfit:   exitRefused, act.Unreachable: exitUnreachable, act.Denied: exitRefused,
	act.Away: exitUnreachable,
}

// problem gives an error of an act its exit code, and the flag that insists.
func (o *operator) problem(err error) error {
	p, known := errors.AsType[*act.Problem](err)
	switch {
	case !known && errors.Is(err, context.Canceled):
		return failedErrorf("interrupted: run the same command again")
	case !known:
		return err
	case p.Anyway:
		return refusedErrorf("%w: --yes does it anyway", p)
	case errors.Is(p, broker.ErrNotConnected):
		return &exitError{exitUnreachable, fmt.Errorf("%s: nothing was done",
			awayBroker(o.cfg, broker.Trouble(p.Err)))}
	}
	if target, ok := errors.AsType[*triage.TargetError](err); ok && errors.Is(target, triage.ErrNoAction) {
		if _, hint := submit.New(o.store, nil).Action(o.cmd.Context(), o.action); hint != nil {
			return runError(hint)
		}
	}
	return &exitError{cmp.Or(exitCodes[p.Kind], exitFailed), p}
}

type planFlags struct{ dryRun, yes bool }

func (f *planFlags) add(flags *pflag.FlagSet, dryRun, yes string) {
	flags.BoolVar(&f.dryRun, "dry-run", false, dryRun)
	flags.BoolVar(&f.yes, "yes", false, yes)
}

// confirm asks a question unless --yes answers it.
func (c *client) confirm(flags planFlags, ask *question) error {
	if flags.yes {
		return nil
	}
	in := c.cmd.InOrStdin()
	return ask.confirm(in, c.stderr, interactive(in))
}

// start is the context of a run. The first signal stops the run after its step, a second one ends the process. Notes
// report the progress of a run that takes longer.
func (c *client) start(what string) (context.Context, context.CancelFunc) {
	ctx, stop := supervise.Interruptible(c.cmd.Context())
	return triage.WithProgress(ctx, c.progress(what, time.Now())), stop
}

// progressEvery is the time between two notes about the progress of a run.
const progressEvery = 2 * time.Second

// progress makes notes about the progress of a run.
func (a *app) progress(what string, began time.Time) func(done, total int64) {
	last := began
	return func(done, total int64) {
		now := time.Now()
		if now.Sub(last) < progressEvery || done == total {
			return
		}
		last = now
		text := count(int(done), what)
		if total > 0 {
			text = fmt.Sprintf("%d of %s", done, count(int(total), what))
		}
		a.notef("%s (%s)", text, short(now.Sub(began)))
	}
}

// question is a confirmation by the operator.
type question struct {
	unasked string // the refusal without a terminal: what would happen, and which flags help
	text    string // the text at the terminal
	want    string // the answer that confirms it
	nothing string // what another answer means, such as "nothing was taken"
}

// newQuestion asks for a word about what a page shows, or for a yes.
func newQuestion(what string, w *page, word string) *question {
	want, ask := cmp.Or(word, "y"), "y or n"
	if word != "" {
		ask = "type " + clean(word)
	}
	return &question{
		unasked: what + ": --yes does it, --dry-run shows more",
		text:    fmt.Sprintf("%sdo it? %s: ", w, ask), want: want, nothing: "nothing was done",
	}
}

// interactive reports whether the input is a terminal.
func interactive(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirm asks at the terminal; elsewhere it refuses.
func (q *question) confirm(in io.Reader, out io.Writer, person bool) error {
	if !person {
		return refusedErrorf("%s", q.unasked)
	}
	_, _ = fmt.Fprint(out, q.text)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	answer = strings.TrimSpace(answer)
	if answer == q.want || q.want == "y" && answer == "Y" {
		return nil
	}
	return refusedErrorf("%s: the answer is not %s", q.nothing, q.want)
}

// extended is a JSON object with one more field at its end.
type extended struct {
	object any
	name   string
	value  any
}

func with(object any, name string, value any) extended {
	return extended{object: object, name: name, value: value}
}

// MarshalJSON encodes the object and the field.
func (e extended) MarshalJSON() ([]byte, error) {
	object, err := jsonvalue.Encode(e.object)
	field, fieldErr := jsonvalue.Encode(map[string]any{e.name: e.value})
	if err := cmp.Or(err, fieldErr); err != nil {
		return nil, err
	}
	return slices.Concat(object[:len(object)-1], []byte(","), field[1:]), nil
}

// The deliveries in receipts.
const (
	deliveryNone      = "none"      // there were none
	deliveryPublished = "published" // the broker has them
	deliveryStored    = "stored"    // a running engine publishes them
)

// delivery waits until the broker has confirmed the messages of a receipt, at most for publishTimeout. It notes why
// they are stored instead.
func (o *operator) delivery(ctx context.Context, sent triage.Sent) string {
	if len(sent.Rows) == 0 {
		return deliveryNone
	}
	ctx = context.WithoutCancel(ctx)
	switch {
	case o.publisher.link.State() != broker.StateConnected || o.awaitPublished(ctx, sent.Rows...) != nil:
		o.notef("the messages are stored, and a running engine will publish them: %s",
			awayBroker(o.cfg, o.publisher.link.Trouble()))
	case o.publisher.returned.Load():
		o.notef("no engine has run on this broker yet: the messages are stored until one does")
	case o.publisher.refused.Load():
		o.notef("the broker does not accept a message: an engine tries it for half a minute, then it is a dead letter " +
			"again: `attune-executor dlq list --open`")
	default:
		return deliveryPublished
	}
	return deliveryStored
}

// refusal is a thing without a change, and the reason.
type refusal struct {
	ID    int64  `json:"id"`
	Error string `json:"error"`
}

// verdict is the error of a command about several things: the only problem, or their number after a note about each.
// Things that a run left were not done either.
func (a *app) verdict(asked, left int, what, done string, problems []error) error {
	switch {
	case len(problems) == 0:
		return nil
	case asked == 1:
		return problems[0]
	}
	worst := exitRefused
	for _, problem := range problems {
		a.notef("error: %s", oneLine(problem.Error()))
		if code := a.exitCode(problem); code != exitRefused && worst != exitUnreachable {
			worst = code
		}
	}
	return &exitError{worst, fmt.Errorf("%d of %s not %s", len(problems)+left, count(asked, what), done)}
}
