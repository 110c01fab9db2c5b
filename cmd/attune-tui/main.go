// Command attune-tui shows live queues, executions, workers and dead letters of an installation in a terminal, and
// acts on them.
//
// It reads through read-only sessions and acts through others. It starts and works while the database or the broker
// is down, and says which one, since when and why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/cmd/attune-tui/internal/quickstart"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/worker/process"
	"github.com/attune-go/attune/migrations"
	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/renderer"
	"github.com/attune-go/attune/tui/settings"
	"github.com/attune-go/attune/tui/textmode"
)

// Exit codes for scripts.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitUnreachable = 4
)

func main() {
	_ = process.Shield() // before it reads a secret; not every platform can
	quickstart.Restore()
	ctx, stop := supervise.Interruptible(context.Background())
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// exitError is an error with its exit code.
type exitError struct {
	code int
	err  error
}

// Error is one line.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// run is the program with its environment.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	err := start(ctx, args, environ, stdout)
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if exit, ok := errors.AsType[*exitError](err); ok {
		code = exit.code
	}
	if !errors.Is(err, errNoAnswer) && !supervise.NoReader(err) {
		// there is nowhere left to report a failure
		_, _ = fmt.Fprintf(stderr, "attune-tui: %s\n", phrase.Visible(err.Error()))
	}
	return code
}

// errNoAnswer ends a snapshot without data; the frame shows why.
var errNoAnswer = errors.New("no source answered")

func start(ctx context.Context, args, environ []string, stdout io.Writer) error {
	opts, err := parse(args, environ)
	switch {
	case errors.Is(err, errHelp):
		return write(stdout, []byte(usage()))
	case err != nil:
		return &exitError{exitUsage, err}
	case opts.version:
		return write(stdout, []byte("attune-tui "+programVersion()+"\n"))
	case opts.completion != "":
		script, err := completion(opts.completion)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		return write(stdout, []byte(script))
	}
	file, err := settings.Load(settings.Path(environ))
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if opts.contexts {
		list, err := contexts(file, opts.output)
		if err != nil {
			return err
		}
		return write(stdout, list)
	}
	opts.follow(file)
	opts.app.Notice = strings.Join(file.Warnings, "; ")
	return show(ctx, &launcher{opts: opts, environ: environ, file: file}, stdout)
}

func show(ctx context.Context, l *launcher, stdout io.Writer) error {
	i, err := l.first(ctx)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to, err := l.open(ctx, i)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	opts := l.shown(to)
	if opts.snapshot == "" && !opts.plain {
		return live(ctx, cancel, to, opts, i.cfg)
	}
	defer to.Close()
	if err := fits(ctx, i.cfg); err != nil {
		return err
	}
	if opts.snapshot != "" {
		return snapshot(ctx, to.Source, opts, stdout)
	}
	return follow(ctx, to, opts, stdout)
}

// fits refuses a schema that is too old or too new for this program. A database that does not answer, and an
// installation without an engine of this program, are shown as they are.
func fits(ctx context.Context, cfg *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	own := storeConfig(cfg)
	own.MaxConnections = 1
	st, err := store.Open(ctx, own, nil)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer st.Close()
	_, err = migrations.Fits(ctx, st.Pool(), cfg.Database.Schema)
	if unfit, ok := errors.AsType[*migrations.UnfitError](err); ok && unfit.Version > 0 {
		return &exitError{exitRefused, unfit}
	}
	return nil
}

func write(to io.Writer, text []byte) error {
	_, err := to.Write(text)
	return err
}

// open prepares database and broker without waiting for them.
func open(ctx context.Context, cfg *config.Config) (*alerting.Reader, func(), error) {
	st, err := store.Open(ctx, storeConfig(cfg), nil)
	if err != nil {
		return nil, nil, err
	}
	reader, closeBroker, err := openBroker(cfg)
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	deps := monitor.Deps{Store: st, Broker: reader}
	closeAll := func() {
		closeBroker()
		st.Close()
	}
	return alerting.NewReader(monitor.New(monitor.Config{
		HeartbeatEvery: cfg.Executor.HeartbeatInterval, StaleAfter: cfg.Executor.StaleAfter(),
		QueueTimeout: cfg.Executor.Queue.Timeout, MaxQueued: cfg.Executor.Queue.MaxQueueLength,
		OrphanInterval: cfg.Executor.OrphanInterval(), ScheduledTimeout: cfg.Executor.ScheduledTimeout,
		SilentReplicas: cfg.Retention.SilentReplicas,
		ActionRetries:  lifecycle.ActionRetries(cfg.Executor.Retry.HonourActionMaxRetries),
	}, deps), cfg.Alerts, nil), closeAll, nil
}

func storeConfig(cfg *config.Config) store.Config {
	return store.Config{
		URL: cfg.Database.URL, Login: cfg.Login("database.url"), Schema: cfg.Database.Schema, MaxConnections: poolSize,
		ConnectTimeout:  connectTimeout,
		ApplicationName: cfg.Named("attune-tui"), IdleTimeout: cfg.Database.IdleTimeout, ReadOnly: true,
		StatementTimeout: statementTimeout,
	}
}

// live runs the dashboard until the operator quits. Acts that still run are stopped after their current step and
// record their result.
func live(
	ctx context.Context, cancel context.CancelFunc, to *app.Installation, opts options, cfg *config.Config,
) error {
	asks := asksBackground(opts.app.Theme, opts.app.Environ)
	if asks {
		opts.app.AskBackground = askBackground
	}
	model, err := app.New(ctx, to.Source, opts.app)
	if err != nil {
		to.Close()
		return &exitError{exitUsage, err}
	}
	terminal, err := renderer.Open(os.Stdin, os.Stdout, !opts.noMouse)
	if err != nil {
		model.Close()
		return fmt.Errorf("%w: use --plain for every change, --snapshot VIEW for one frame", err)
	}
	defer terminal.Close()
	var program *tea.Program
	var keys io.Reader = terminal.Input()
	if asks {
		keys = &input{File: terminal.Input(), answered: func(msg tea.Msg) { program.Send(msg) }}
	}
	program = tea.NewProgram(terminal.Draw(model), tea.WithoutRenderer(), tea.WithoutSignalHandler(),
		tea.WithInput(keys))
	// A signal quits as a key does: the end of a context that Bubble Tea knows would not wait for the reader of keys.
	context.AfterFunc(ctx, program.Quit)
	compared := make(chan error, 1)
	go func() { // the first frame waits for no server
		unfit := fits(ctx, cfg)
		if unfit != nil {
			program.Quit()
		}
		compared <- unfit
	}()
	_, err = program.Run()
	terminal.Close()
	cancel()
	model.Wait(leaveTimeout)
	model.Close()
	if unfit := <-compared; unfit != nil {
		return unfit
	}
	return err
}

// follow prints changes until the program is interrupted.
func follow(ctx context.Context, to *app.Installation, opts options, stdout io.Writer) error {
	every := opts.app.Refresh
	if every == 0 {
		every = app.DefaultRefresh
	}
	return textmode.Run(ctx, to.Source,
		textmode.Config{Context: to.Name, Every: every, Timeout: plainTimeout, JSON: opts.output == "json"}, stdout)
}

// snapshot prints one frame, or its data.
func snapshot(ctx context.Context, source app.Reader, opts options, stdout io.Writer) error {
	shot, err := app.Take(ctx, source, opts.app, opts.id, opts.width, opts.height)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	out := []byte(shot.Text())
	if opts.output == "json" {
		if out, err = shot.JSON(); err != nil {
			return err
		}
	}
	if err := write(stdout, out); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	if shot.Failed() {
		return &exitError{exitUnreachable, errNoAnswer}
	}
	return nil
}
