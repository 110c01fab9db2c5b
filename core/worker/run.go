package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/tracing"
	"github.com/attune-go/attune/core/worker/output"
	"github.com/attune-go/attune/core/worker/process"
)

// report is the result of an execution in the format of existing consumers.
type report struct {
	ExitCode        int             `json:"exit_code"`
	DurationMS      int64           `json:"duration_ms"`
	Succeeded       bool            `json:"succeeded"`
	Stdout          string          `json:"stdout,omitempty"`
	StdoutTruncated bool            `json:"stdout_truncated,omitempty"`
	StderrLog       string          `json:"stderr_log,omitempty"`
	StderrTruncated bool            `json:"stderr_truncated,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	QueueAck        json.RawMessage `json:"queue_ack,omitempty"`
	OutputError     string          `json:"output_error,omitempty"`
	Error           string          `json:"error,omitempty"`
	Cancelled       bool            `json:"cancelled,omitempty"`
	TimedOut        bool            `json:"timed_out,omitempty"`

	death string // the signal that killed it
}

// ending is the end of an execution before it is written.
type ending struct {
	job    *job
	status lifecycle.Status
	result string // JSON
	took   time.Duration
	// secrets are the encrypted values that were removed from the result.
	secrets []secret.Sealed
	// written is called when the end is written.
	written func()
	// unstarted is why the worker could not start a process: nothing ran, and the execution goes back. Nil otherwise.
	unstarted error
}

// runner runs one execution to its end.
type runner struct {
	cfg    Config
	env    []string
	logger *slog.Logger
	now    func() time.Time
	vault  *vault
	keys   *keystore // nil without one

	installed  versionSet // as found at the start
	separation separation
	guard      *process.Guard
	room       *semaphore.Weighted // for large results until they are written
}

func newRunner(cfg Config, v *vault, keys *keystore, installed versionSet, s separation, g *process.Guard) *runner {
	return &runner{
		cfg: cfg, env: cfg.baseEnv(), logger: v.logger, now: time.Now, vault: v, keys: keys, installed: installed,
		separation: s, guard: g, room: semaphore.NewWeighted(roomForResults),
	}
}

// run returns the end of the job. If a function continues after its context ended, returned is
// closed later than run returns.
func (r *runner) run(j *job) (end ending, returned <-chan struct{}) {
	limit := timeout(j.row, r.cfg.TaskTimeout)
	ctx, stop := context.WithTimeoutCause(j.ctx, limit, ErrTimeout)
	defer stop()
	begin := r.now()
	stdout := output.NewCaptureWithin(r.cfg.MaxStdoutBytes, r.cfg.MaxResultBytes)
	stderr := output.NewCaptureWithin(r.cfg.MaxStderrBytes, r.cfg.MaxResultBytes)

	var rep report
	var cause error
	var does content
	given, known, err := r.params(ctx, j)
	params := given
	if err == nil {
		params, known, err = r.keys.merge(ctx, j.row, given, known)
	}
	if err == nil {
		does, err = r.find(j.row)
	}
	switch {
	case err != nil:
	case does.fn != nil:
		task := Task{
			ActionRef: j.row.ActionRef, Attempt: int(j.attempt), ExecutionID: j.id, PackRef: text(j.row.PackRef),
			Params: params, Stdout: stdout, Stderr: stderr, TraceParent: j.traced.String(),
		}
		j.begin()
		rep, returned, cause = r.function(ctx, does.fn, task)
	default:
		env := r.environment(j.row, given, limit)
		if j.traced.Valid() {
			env = append(env, tracing.Variable+"="+j.traced.String())
		}
		rep, cause, err = r.process(ctx, j, does, params, trusted(j.row, given), env, stdout, stderr)
	}
	var unstarted error
	if err != nil && !j.hasBegun() {
		if cause = context.Cause(ctx); cause == nil && r.isWorkerFault(ctx, err) {
			unstarted = err
		}
	}
	if err != nil {
		rep = report{ExitCode: -1, Error: output.Text([]byte(err.Error()))}
	}
	took := r.now().Sub(begin)
	done := r.awaitRoom(stdout.Len() + stderr.Len() + len(rep.Data))
	if err == nil && does.fn == nil {
		r.read(&rep, text(j.row.OutputFormat), stdout, stderr)
	}
	r.boundData(&rep)

	rep.DurationMS = took.Milliseconds()
	rep.StdoutTruncated, rep.StderrTruncated = stdout.Truncated(), stderr.Truncated()
	rep.StderrLog = output.Text(stderr.Bytes())
	if rep.Data == nil {
		rep.Stdout = output.Text(stdout.Bytes())
	}
	secrets := r.vault.seal(&rep, j.row.OutSchema, known)
	if rep.QueueAck == nil {
		rep.QueueAck = queueAck(rep.Data)
	}
	r.boundTexts(&rep)
	end = conclude(j, rep, cause, limit)
	end.secrets, end.written, end.unstarted = secrets, done, unstarted
	return end, returned
}

// params are the parameters for the action, with decrypted secrets.
func (r *runner) params(ctx context.Context, j *job) (json.RawMessage, *secret.Finder, error) {
	opened, known, err := r.vault.open(ctx, j.id, j.row.Config)
	if err != nil {
		return nil, nil, err
	}
	params, err := schema.Fill(j.row.ParamSchema, opened)
	return params, known, err
}

// function calls a Go function. It returns the report, a channel that closes when the function has
// returned, and the cause of an interruption. After its context ended the function gets the grace
// period; then the end is decided without it.
func (r *runner) function(ctx context.Context, fn Func, task Task) (report, <-chan struct{}, error) {
	done := make(chan struct{})
	result := make(chan returned, 1)
	go func() {
		defer close(done)
		result <- call(ctx, fn, task)
	}()
	select {
	case got := <-result:
		return reportOf(got), done, causeUnlessDone(ctx, got.err)
	case <-ctx.Done():
	}
	timer := time.NewTimer(r.cfg.KillGrace)
	defer timer.Stop()
	select {
	case got := <-result:
		return reportOf(got), done, causeUnlessDone(ctx, got.err)
	case <-timer.C:
		return report{ExitCode: -1, Error: "the function did not stop"}, done, context.Cause(ctx)
	}
}

func reportOf(got returned) report {
	if got.err == nil {
		return report{Succeeded: true, Data: got.data}
	}
	rep := report{ExitCode: 1, Error: output.Text([]byte(got.err.Error()))}
	if exit, ok := errors.AsType[*ExitError](got.err); ok && exit.Code != 0 {
		rep.ExitCode = exit.Code
	}
	return rep
}

// causeUnlessDone is why the context ended, or nil if the function succeeded anyway: a late cancel
// does not undo a finished action.
func causeUnlessDone(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return context.Cause(ctx)
}

// trusted reports whether a parameter may have any name: the action declares it, or it is a key of
// the keystore. The rows are read at the first call.
func trusted(row started, given json.RawMessage) func(string) bool {
	var fields map[string]json.RawMessage
	var declared []string
	read := sync.OnceFunc(func() {
		_ = json.Unmarshal(given, &fields) // without an object there are no names
		rules, err := schema.Parse(row.ParamSchema)
		if err != nil {
			rules, _ = schema.Parse(nil)
		}
		declared = rules.Names()
	})
	return func(name string) bool {
		read()
		_, ofExecution := fields[name]
		return !ofExecution || slices.Contains(declared, name)
	}
}

// process runs a file or code as a child process.
func (r *runner) process(ctx context.Context, j *job, does content, params json.RawMessage,
	trusted func(string) bool, env []string, stdout, stderr *output.Capture,
) (report, error, error) {
	program, err := r.program(j.row, does, params, trusted, env)
	if err != nil {
		return report{}, nil, err
	}
	defer program.remove()
	outcome, err := startRepeating(ctx, process.Command{
		Args: program.args, Dir: program.dir, Env: program.env,
		Grace: r.cfg.KillGrace, Stdin: program.stdin, Stdout: stdout, Stderr: stderr,
		Guard: r.guard, Limits: r.separation.limits, User: r.separation.user, Started: j.begin,
	})
	if err != nil {
		return report{}, nil, fmt.Errorf("run action %s: %w", j.row.ActionRef, err)
	}
	rep := report{ExitCode: outcome.ExitCode, Succeeded: outcome.ExitCode == 0 && outcome.Interrupted == nil}
	rep.death = outcome.Death()
	if outcome.Signal != 0 {
		rep.ExitCode = -1
	}
	return rep, outcome.Interrupted, nil
}

func (r *runner) read(rep *report, format string, stdout, stderr *output.Capture) {
	if rep.ExitCode == 0 {
		r.readOutput(rep, format, stdout)
	} else {
		rep.Error = failure(rep.ExitCode, output.Text(stderr.Bytes()), rep.death)
	}
}

// failure is the error of a failed process: its standard error if that is short, else the last line
// of it. death is the signal that killed it.
func failure(exitCode int, stderr, death string) string {
	const short = 5
	lines := strings.TrimSuffix(stderr, "\n")
	silent := strings.TrimSpace(stderr) == ""
	switch {
	case silent && death != "":
		return fmt.Sprintf("Command exited with code %d: %s", exitCode, death)
	case silent:
		return fmt.Sprintf("Command exited with code %d", exitCode)
	case strings.Count(lines, "\n") >= short:
		stderr = lines[strings.LastIndexByte(lines, '\n')+1:]
	}
	if death != "" {
		return strings.TrimSpace(stderr) + " (" + death + ")"
	}
	return stderr
}

// readOutput parses standard output. Output of the wrong format does not fail the action: it is
// kept as text with a note.
func (r *runner) readOutput(rep *report, format string, stdout *output.Capture) {
	if stdout.Truncated() && format != output.FormatText && format != "" {
		rep.OutputError = fmt.Sprintf("standard output exceeds %d bytes and was not read as %s", r.cfg.MaxStdoutBytes,
			format)
		return
	}
	data, err := output.Parse(format, stdout.Bytes())
	if err != nil {
		rep.OutputError = output.Text([]byte(err.Error()))
		return
	}
	rep.Data = data
}

// conclude decides the terminal status from the report and the cause of an interruption. A timeout
// is a failure that names the limit, not the duration: existing services expect the status timeout
// only of inquiries.
func conclude(j *job, rep report, cause error, limit time.Duration) ending {
	status := lifecycle.StatusFailed
	switch {
	case errors.Is(cause, ErrCancelled):
		status, rep.Cancelled, rep.Succeeded, rep.Error = lifecycle.StatusCancelled, true, false, ErrCancelled.Error()
	case errors.Is(cause, ErrTimeout):
		rep.TimedOut, rep.Succeeded, rep.ExitCode = true, false, -1
		rep.Error = fmt.Sprintf("Execution timed out after %s seconds",
			strconv.FormatFloat(limit.Seconds(), 'f', -1, 64))
	case cause != nil:
		rep.Succeeded, rep.Error = false, cause.Error()
	case rep.Succeeded:
		status = lifecycle.StatusCompleted
	}
	return ending{job: j, status: status, result: encoded(rep)}
}

// timeout is the execution's own, else its action's, else the worker's.
func timeout(row started, fallback time.Duration) time.Duration {
	var task struct {
		TimeoutSeconds *float64 `json:"timeout_seconds"`
	}
	if json.Unmarshal(row.WorkflowTask, &task) == nil && task.TimeoutSeconds != nil && *task.TimeoutSeconds > 0 {
		return seconds(*task.TimeoutSeconds)
	}
	if row.TimeoutSeconds > 0 {
		return seconds(float64(row.TimeoutSeconds))
	}
	return fallback
}

// seconds converts without overflow.
func seconds(n float64) time.Duration {
	const longest = float64(10 * 365 * 24 * 3600)
	return time.Duration(min(n, longest) * float64(time.Second))
}

// queueAck extracts the acknowledgement of work-queue items from the data.
func queueAck(data json.RawMessage) json.RawMessage {
	var fields struct {
		QueueAck json.RawMessage `json:"queue_ack"`
	}
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &fields) != nil {
		return nil
	}
	return fields.QueueAck
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
