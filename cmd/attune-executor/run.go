package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

// runOptions are the flags of `run`.
type runOptions struct {
	params     []string
	paramsFile string
	priority   string
	waitFlags
}

func newRunCommand(a *app) *cobra.Command {
	options := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run ACTION",
		Short: "Request an execution of an action",
		Long: "Request an execution of an action. With --wait the command prints the result of the last attempt,\n" +
			"and exits with 0 only if that completed.\n\n" +
			"-p key=value gives one parameter: a text if the action declares a string or if it is not JSON,\n" +
			"otherwise JSON. -p key:=json is always JSON.\n" +
			"--params-file names a YAML or JSON file, - is the standard input; -p wins over it.",
		Example: "  attune-executor run core.echo -p message=hi --wait\n" +
			"  attune-executor run deploy.rollout --params-file rollout.yaml -p 'targets:=[\"a\",\"b\"]'",
		Args: oneArg("the ref of an action, such as core.echo"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0], options) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&options.params, "param", "p", nil, "a parameter, key=value or key:=json; may be repeated")
	flags.StringVar(&options.paramsFile, "params-file", "",
		"a YAML or JSON file with parameters, - for the standard input")
	flags.StringVar(&options.priority, "priority", "normal",
		"the lane of its queue: high, normal or low")
	words(cmd, "priority", "high", "normal", "low")
	options.waitFlags.add(flags, "wait for the end and print the result")
	return cmd
}

func (a *app) run(cmd *cobra.Command, ref string, options *runOptions) error {
	if err := options.check(); err != nil {
		return err
	}
	priority, err := submit.ParsePriority(options.priority)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	params, err := readParams(options, cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	ctx, release := supervise.Interruptible(cmd.Context())
	defer release()
	encoded, err := c.encodeParams(ctx, ref, params, options.params)
	if err != nil {
		return err
	}
	if ref != inquiry.Action { // that needs no worker
		if err := a.awaitWorker(ctx, c, options.timeout); err != nil {
			return err
		}
	}
	// An interrupted command still reports its request.
	asking, answered := lingering(ctx, requestTimeout)
	defer answered()
	publisher, err := c.openPublisher(asking, "attune-executor run")
	if err != nil {
		return err
	}
	defer publisher.close()
	submitter, err := c.submitter(publisher)
	if err != nil {
		return err
	}
	done, err := submitter.Request(asking, submit.Request{ActionRef: ref, Params: encoded, Priority: priority})
	if err != nil {
		return runError(err)
	}
	c.noteStored(asking, publisher, c.awaitPublished(asking, done.OutboxID), fmt.Sprintf("execution %d", done.ID),
		"begins")
	if ref == inquiry.Action {
		a.noteInquiry(ctx, c, done.ID)
	}
	if !options.wait {
		out := runResult{ID: done.ID, Action: done.ActionRef, Status: "requested"}
		return a.write(cmd, out, func(w *page) {
			w.rowf("execution %d requested", done.ID)
		})
	}
	return c.awaitEnd(ctx, submitter, done, options.timeout)
}

// requestTimeout bounds a request after the command was interrupted.
const requestTimeout = 5 * time.Second

// lingering returns a context that ends a while after ctx.
func lingering(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// noteInquiry says how to answer the question of an execution of core.ask, after an engine has
// asked it.
func (a *app) noteInquiry(ctx context.Context, c *client, execution int64) {
	waiting, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	for {
		page, err := c.monitor().Inquiries(waiting, monitor.InquiryFilter{Execution: execution, Limit: 1}, "")
		if err == nil && len(page.List) > 0 {
			a.notef("inquiry %d waits for the answer: `attune-executor inquiry respond %d`", page.List[0].ID,
				page.List[0].ID)
			return
		}
		if row, err := c.store.GetExecution(waiting, execution); err == nil && row.Status.Terminal() {
			return // it could not be asked; its end says why
		}
		if !supervise.Sleep(waiting, 100*time.Millisecond) {
			a.notef("no engine has asked yet: `attune-executor inquiry list --execution %d` shows the question "+
				"when one has", execution)
			return
		}
	}
}

// workerTimeout is how long `run` waits for a worker to register: an engine fails executions
// without a worker, and the first worker may be starting.
const workerTimeout = 10 * time.Second

// awaitWorker waits for a live worker, at most for workerTimeout or the timeout. Without one the
// engine decides.
func (a *app) awaitWorker(ctx context.Context, c *client, timeout time.Duration) error {
	if c.cfg.Executor.NoWorkers == "wait" {
		return nil
	}
	limit := workerTimeout
	if timeout > 0 {
		limit = min(limit, timeout)
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for told := false; ; told = true {
		workers, err := c.monitor().Workers(ctx)
		if err != nil {
			return err
		}
		var kept []string
		for _, worker := range workers.List {
			switch worker.Health(workers.At, workers.StaleAfter) {
			// the engine waits for these workers too
			case monitor.WorkerActive, monitor.WorkerBusy, monitor.WorkerDegraded,
				monitor.WorkerSuspect, monitor.WorkerUnhealthy, monitor.WorkerDeaf:
				return nil
			case monitor.WorkerCordoned:
				kept = append(kept, worker.Name)
			}
		}
		if !told && len(kept) > 0 {
			a.notef("no worker may be given work, %s cordoned: waiting up to %s for another", strings.Join(kept, ", "),
				short(limit))
		} else if !told {
			a.notef("no worker is alive: waiting up to %s for one, start it with `attune-executor worker`",
				short(limit))
		}
		if !supervise.Sleep(waiting, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// noteUnknown warns of undeclared parameters, with the nearest name or all names. They are
// delivered anyway.
func (a *app) noteUnknown(ref string, params map[string]any, described []byte) {
	parsed, err := schema.Parse(described)
	if err != nil {
		return // its author's to mend
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		_, known := parsed.Lacks([]string{name})
		switch near := phrase.Nearest(name, known); {
		case near != "":
			a.notef("warning: %s has no parameter %s; the nearest is %s", ref, clean(name), near)
		case len(known) > 0:
			a.notef("warning: %s has no parameter %s; it has %s", ref, clean(name), clean(strings.Join(known, ", ")))
		}
	}
}

// encodeParams encodes the parameters by the action's schema.
func (c *client) encodeParams(
	ctx context.Context, ref string, params map[string]any, pairs []string,
) (json.RawMessage, error) {
	submitter, err := c.submitter(nil)
	if err != nil {
		return nil, err
	}
	action, err := submitter.Action(ctx, ref)
	if err != nil {
		return nil, runError(err)
	}
	if err := addPairs(params, pairs, action.ParamSchema); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, usageErrorf("the parameters cannot be written as JSON: %w", err)
	}
	c.noteUnknown(ref, params, action.ParamSchema) // first, as a missing parameter may be misspelt
	if err := submitter.Check(ctx, submit.Request{ActionRef: ref, Params: encoded}); err != nil {
		return nil, runError(err)
	}
	return encoded, nil
}

// runError explains an error of a request, with its exit code.
func runError(err error) error {
	var unknown *submit.UnknownActionError
	var invalid *submit.InvalidParamsError
	_, tooDeep := errors.AsType[*jsonvalue.Error](err)
	switch {
	case tooDeep:
		return usageErrorf("%w", err)
	case errors.As(err, &invalid):
		return usageErrorf("%w: give them with -p NAME=VALUE or --params-file", err)
	case errors.Is(err, submit.ErrSealed):
		return refusedErrorf("%w: set it to the key that the workers have", err)
	case errors.As(err, &unknown) && unknown.Nearest == "":
		return failedErrorf("%w: apply the pack that has it", err)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was requested is unknown, look with `attune-executor execution list`", err)
	}
	return err
}

// runResult is the output of `run`.
type runResult struct {
	ID      int64           `json:"id"`
	Action  string          `json:"action"`
	Status  string          `json:"status"`
	Worker  *int64          `json:"worker,omitempty"`
	Seconds float64         `json:"seconds,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	// Attempts counts the executions; this is the last one, Original the first.
	Attempts int   `json:"attempts,omitempty"`
	Original int64 `json:"original_execution,omitempty"`
}

// awaitEnd prints the end of the last attempt, and fails unless it completed. An interrupt ends
// only the wait.
func (c *client) awaitEnd(
	ctx context.Context, submitter *submit.Submitter, done submit.Requested, timeout time.Duration,
) error {
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	end, attempts, err := c.followEnd(ctx, c, submitter, done.ID)
	if errors.Is(err, context.DeadlineExceeded) {
		return failedErrorf(
			"execution %d has not ended within %s: it goes on, look with `attune-executor execution show %d`",
			end.ID, timeout, end.ID)
	}
	if errors.Is(err, context.Canceled) && c.cmd.Context().Err() == nil {
		return failedErrorf("no longer waiting: execution %d goes on, look with `attune-executor execution show %d`, "+
			"stop it with `attune-executor execution cancel %d`",
			end.ID, end.ID, end.ID)
	}
	if err != nil {
		return err
	}
	took := end.Updated.Sub(end.Created)
	if end.FinishedAt != nil {
		took = end.FinishedAt.Sub(end.Created)
	}
	out := runResult{
		ID: end.ID, Action: end.ActionRef, Status: string(end.Status), Worker: end.Worker,
		Seconds: took.Seconds(), Result: end.Result, Attempts: attempts,
	}
	if end.ID != done.ID {
		out.Original = done.ID
	}
	err = c.show(out, func(w *page) {
		line := fmt.Sprintf("execution %d %s in %s", out.ID, out.Status, short(took))
		if out.Worker != nil {
			line += fmt.Sprintf(" on worker %d", *out.Worker)
		}
		if out.Attempts > 1 {
			line += fmt.Sprintf(" as attempt %d of execution %d", out.Attempts, out.Original)
		}
		w.row(line)
		if len(out.Result) > 0 {
			w.text(pretty(out.Result))
		}
	})
	if err == nil && !end.Status.Succeeded() {
		return failedErrorf("execution %d %s%s: %s", end.ID, end.Status, because(end.Result), adviceAfter(end))
	}
	return err
}

// noWorkers is the error of an execution that the engine could not place.
const noWorkers = "no workers available"

func adviceAfter(end store.Execution) string {
	if strings.Contains(because(end.Result), noWorkers) {
		return "start a worker that can run it (`attune-executor workers list` shows the workers), " +
			"or set executor.no_workers to wait"
	}
	return fmt.Sprintf("look with `attune-executor execution show %d`", end.ID)
}

// because quotes the error in a result.
func because(result []byte) string {
	var fields struct {
		Error   any `json:"error"`
		Message any `json:"message"`
	}
	if json.Unmarshal(result, &fields) != nil {
		return ""
	}
	for _, field := range []any{fields.Error, fields.Message} {
		if text, ok := field.(string); ok && text != "" {
			return " (" + clean(text) + ")"
		}
	}
	return ""
}

// followEnd waits for the ends of an execution and of its retries, and returns the last one
// with the number of attempts. With an error it returns the awaited execution.
func (a *app) followEnd(ctx context.Context, c *client, submitter *submit.Submitter,
	id int64,
) (end store.Execution, attempts int, err error) {
	for attempts = 1; ; attempts++ {
		end, err = submitter.Wait(ctx, id)
		if err != nil {
			return store.Execution{ID: id}, attempts, err
		}
		if !unsuccessful(end.Status) {
			return end, attempts, nil
		}
		next, err := a.awaitRetry(ctx, c, id)
		if err != nil || next == nil {
			return end, attempts, err
		}
		a.notef("attempt %d %s%s, repeated as execution %d%s", attempts, end.Status, because(end.Result), next.ID,
			pauseText(*next))
		id = next.ID
	}
}

// awaitRetry returns the attempt that repeats an execution; nil without one.
func (a *app) awaitRetry(ctx context.Context, c *client, id int64) (*monitor.Attempt, error) {
	waiting, cancel := context.WithTimeout(ctx, a.repeatTimeout)
	defer cancel()
	mon, policy := c.monitor(), c.cfg.Executor.Retry.Policy()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		answer, err := mon.NextRetry(waiting, id, policy)
		switch {
		case err == nil && answer.By != nil:
			return attemptOf(waiting, mon, *answer.By), nil
		case err == nil && !answer.Expected:
			return nil, nil //nolint:nilnil // no retry is an answer
		case errors.Is(err, monitor.ErrNotFound):
			return nil, fmt.Errorf("execution %d was deleted before its retry was requested", id)
		case err != nil && waiting.Err() == nil && store.ClassOf(err) != store.ClassUnreachable:
			return nil, err
		}
		if !supervise.Sleep(waiting, pause) {
			if ctx.Err() == nil {
				a.notef("execution %d may be repeated, but no engine has done so within %s", id, short(a.repeatTimeout))
			}
			return nil, nil //nolint:nilnil // no retry is an answer
		}
	}
}

// attemptOf reads one attempt; if that fails, only its id is known.
func attemptOf(ctx context.Context, mon *alerting.Reader, id int64) *monitor.Attempt {
	attempts, _ := mon.Attempts(ctx, id) // the id is enough to go on
	for i := range attempts {
		if attempts[i].ID == id {
			return &attempts[i]
		}
	}
	return &monitor.Attempt{ID: id}
}

func pauseText(attempt monitor.Attempt) string {
	if attempt.Due == nil {
		return ""
	}
	return " in " + short(attempt.Due.Sub(attempt.Created))
}
