package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/triage"
)

// commandPace is the time between two steps of a command: at most 200 a second.
const commandPace = 5 * time.Millisecond

// triageClient is a client that acts for an operator.
type triageClient struct {
	*client
	*triage.Triage

	publisher *publisher // nil: nothing is published
}

// withTriage connects and runs an action. Publishing takes a publisher, which works without its broker too.
func (a *app) withTriage(cmd *cobra.Command, publishing bool, act func(t *triageClient) error) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	c.acts = true
	cfg := triage.Config{
		Actor: triage.LocalActor(), Source: "attune-executor", Pace: commandPace,
		HeartbeatStaleAfter: c.cfg.Executor.StaleAfter(), WithoutStats: !c.cfg.Executor.Queue.EnableMetrics,
	}
	if !publishing {
		return (&triageClient{client: c, Triage: triage.New(cfg, c.store, nil)}).run(act)
	}
	p, err := c.openPublisher(cmd.Context(), cmd.CommandPath())
	if err != nil {
		return err
	}
	defer p.close()
	return (&triageClient{client: c, Triage: triage.New(cfg, c.store, p.relay).With(p.link), publisher: p}).run(act)
}

// run runs an action. Its error is one line without the server's, if the login lacks a privilege.
func (t *triageClient) run(act func(t *triageClient) error) error {
	err := act(t)
	if denied, ok := errors.AsType[*triage.DeniedError](t.Denied(err)); ok {
		return denied
	}
	return err
}

// actingOn makes the RunE of a command that acts on things by their ids.
func (a *app) actingOn(
	k kind, publishing bool, act func(t *triageClient, ids []int64) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ids, err := k.ids(args)
		if err != nil {
			return err
		}
		return a.withTriage(cmd, publishing, func(t *triageClient) error { return act(t, ids) })
	}
}

// Every command that changes something goes through settle, start and finish: the plan and its confirmation, the run
// with its progress, and the receipt.

type planFlags struct{ dryRun, yes bool }

func (f *planFlags) add(flags *pflag.FlagSet, dryRun, yes string) {
	flags.BoolVar(&f.dryRun, "dry-run", false, dryRun)
	flags.BoolVar(&f.yes, "yes", false, yes)
}

// settle prints the plan of a dry run, and otherwise asks the question, if there is one. It reports whether the plan is
// to be run.
func (c *client) settle(flags planFlags, plan any, text func(w *page), ask *question) (run bool, err error) {
	if flags.dryRun {
		return false, c.show(with(plan, "dry_run", true), text)
	}
	if ask == nil || flags.yes {
		return true, nil
	}
	in := c.cmd.InOrStdin()
	return true, ask.confirm(in, c.stderr, interactive(in))
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

// finish prints the receipt of a run, also that of a part. It returns the error of the command: interrupted if a
// signal stopped the run, or else that of the run as problem explains it.
func (c *client) finish(
	ctx context.Context, receipt any, text func(w *page), err, interrupted error, problem func(error) error,
) error {
	printErr := c.show(receipt, text)
	switch {
	case err == nil:
		return printErr
	case ctx.Err() != nil:
		return interrupted
	}
	return problem(err)
}

// interruptedError is the error of a run that a signal stopped.
func interruptedError(left, planned int, what string) error {
	return failedErrorf("interrupted with %d of %s left: run the same command again", left, count(planned, what))
}

// question is a confirmation by the operator.
type question struct {
	unasked string // the refusal without a terminal: what would happen, and which flags help
	text    string // the text at the terminal
	want    string // the answer that confirms it
	nothing string // what another answer means, such as "nothing was taken"
}

// few is the number of things that a plain yes confirms.
const few = 50

// howMany returns the answer that confirms n things, and how to ask for it.
func howMany(n int) (want, ask string) {
	if n > few {
		return strconv.Itoa(n), "type the number"
	}
	return "y", "y or n"
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
	object, err := encodeJSON(e.object, "")
	field, fieldErr := encodeJSON(map[string]any{e.name: e.value}, "")
	if err := cmp.Or(err, fieldErr); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(object, "}") + "," + field[1:]), nil
}

// delivered is a receipt with the delivery of its messages.
func delivered(receipt any, delivery string) extended { return with(receipt, "delivery", delivery) }

// The deliveries in receipts.
const (
	deliveryNone      = "none"      // there were none
	deliveryPublished = "published" // the broker has them
	deliveryStored    = "stored"    // a running engine publishes them
)

// delivery waits until the broker has confirmed the messages of a receipt, at most for
// publishTimeout.
func (t *triageClient) delivery(ctx context.Context, sent triage.Sent) string {
	return t.deliver(ctx, sent, "the messages are stored, and a running engine will publish them",
		"no engine has run on this broker yet: the messages are stored until one does")
}

// deliver notes away, with the reason, if the broker does not answer, and unrouted if a message reached no queue.
func (t *triageClient) deliver(ctx context.Context, sent triage.Sent, away, unrouted string) string {
	if len(sent.Rows) == 0 {
		return deliveryNone
	}
	ctx = context.WithoutCancel(ctx)
	switch {
	case t.publisher.link.State() != broker.StateConnected || t.awaitPublished(ctx, sent.Rows...) != nil:
		t.notef("%s: %s", away, awayBroker(t.cfg, t.publisher.link.Trouble()))
		return deliveryStored
	case t.publisher.returned.Load():
		t.notef("%s", unrouted)
		return deliveryStored
	case t.publisher.refused.Load():
		t.notef("the broker does not accept a message: an engine tries it for half a minute, then it is a dead letter " +
			"again: `attune-executor dlq list --open`")
		return deliveryStored
	}
	return deliveryPublished
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

// actionError explains an error about an action and its queues, with its exit code.
func (t *triageClient) actionError(ref string, err error) error {
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		err = target // without the context that the transaction added
	}
	switch {
	case errors.Is(err, triage.ErrNoAction):
		if _, hint := submit.New(t.store, nil).Action(t.cmd.Context(), ref); hint != nil {
			return runError(hint)
		}
		return err // made just now: the same again succeeds
	case errors.Is(err, triage.ErrGroup), errors.Is(err, triage.ErrLimit):
		return usageErrorf("%w", err)
	case errors.Is(err, triage.ErrNoQueue):
		return failedErrorf("%w: `attune-executor queue list` shows the queues", err)
	}
	return unknownOutcome(err)
}

// unknownOutcome advises to repeat a command if it is unknown whether it was done, or if a signal stopped it.
func unknownOutcome(err error) error {
	switch {
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown: the same command again is safe", err)
	case errors.Is(err, context.Canceled):
		return failedErrorf("interrupted: run the same command again")
	}
	return err
}

// eachAction is an action on several things, one after the other.
type eachAction[R any] struct {
	what, done string // such as "dead letter" and "requeued"
	field      string // the name of the receipts in JSON
	run        func(ctx context.Context, id int64) (R, error)
	problem    func(id int64, err error) error // explains a failure
	line       func(receipt R) string
	sent       func(receipt R) triage.Sent // nil: nothing is sent
}

// runEach acts on one thing after the other, and prints the receipts and the refusals. It stops when the database is
// away.
func runEach[R any](t *triageClient, ids []int64, e eachAction[R]) error {
	receipts, refused, problems, sent := []R{}, []refusal{}, []error(nil), triage.Sent{}
	ctx, stop := t.start(e.what)
	defer stop()
	running, away := context.WithCancel(ctx)
	defer away()
	var run triage.Run
	for _, id := range ids {
		run.Steps = append(run.Steps, triage.Step{
			Rows: []int64{id},
			Do: func(ctx context.Context, _ string) (triage.Outcome, error) {
				receipt, err := e.run(ctx, id)
				if err != nil {
					problem := e.problem(id, err)
					if denied, ok := errors.AsType[*triage.DeniedError](t.Denied(err)); ok {
						problem = denied
						away() // as for the other steps
					}
					refused, problems = append(refused, refusal{id, problem.Error()}), append(problems, problem)
					if store.IsAway(err) {
						away() // the other steps would fail too
					}
					return triage.Outcome{}, err
				}
				receipts = append(receipts, receipt)
				if e.sent != nil {
					sent.Rows = append(sent.Rows, e.sent(receipt).Rows...)
				}
				return triage.Outcome{Done: 1}, nil
			},
		})
	}
	done, err := t.Run(running, run, "")
	if err != nil {
		return err
	}
	var view any = with(map[string]any{e.field: receipts}, "refused", refused)
	if len(done.Left) > 0 {
		view = with(view, "left", done.Left)
	}
	if e.sent != nil {
		view = delivered(view, t.delivery(ctx, sent))
	}
	err = t.show(view, func(w *page) {
		for _, receipt := range receipts {
			w.row(e.line(receipt))
		}
	})
	if err != nil {
		return err
	}
	err = t.verdict(len(ids), len(done.Left), e.what, e.done, problems)
	if ctx.Err() != nil && len(done.Left) > 0 {
		return interruptedError(len(done.Left), len(ids), e.what)
	}
	return err
}
