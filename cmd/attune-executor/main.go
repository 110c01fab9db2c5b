// Command attune-executor is the engine, its reference worker and the operator's command line. This
// package parses flags and prints; the work is done by core.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/core/worker/process"
)

func main() {
	_ = process.Shield() // before it reads a secret; a worker warns where the platform cannot
	os.Exit(execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// The exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitUnreachable = 4
)

// exitError is an error with its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func refusedErrorf(format string, args ...any) error {
	return &exitError{exitRefused, fmt.Errorf(format, args...)}
}

func failedErrorf(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}

// app has the global flags and the streams of all commands.
type app struct {
	configPath string
	logLevel   string
	logFormat  string
	output     string
	environ    []string
	stderr     io.Writer
	// repeatTimeout is how long `run --wait` waits for an engine to repeat an execution.
	repeatTimeout time.Duration

	loaded  *config.Config // nil before it is read
	log     *telemetry.Log // standard error of a service
	running bool           // a command's own code has begun; errors before it are usage
	acts    bool           // the command may have changed something
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{environ: environ, stderr: stderr, repeatTimeout: 10 * time.Second}
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	defer a.flushLog()
	if err == nil {
		return exitDone
	}
	code := a.exitCode(err)
	if supervise.NoReader(err) {
		return code
	}
	err = a.named(ctx, err)
	text := oneLine(err.Error())
	_, denied := store.Denied(err)
	_, explained := errors.AsType[*triage.DeniedError](err)
	_, coded := errors.AsType[*exitError](err)
	switch {
	case denied && !explained, !coded && code == exitUnreachable:
		text = store.Trouble(err).String()
	case code == exitUsage && !a.running:
		text += fmt.Sprintf(": see `%s -h`", cmd.CommandPath())
	case store.IsMissing(err):
		text += ": the schema is missing or older than this program, run `attune-executor migrate up`"
	}
	a.notef("error: %s", text)
	return code
}

// logAsService makes standard error a log that never holds up the process.
func (a *app) logAsService() {
	supervise.OutliveLog()
	a.log = telemetry.NewLog(a.stderr)
	a.stderr = a.log
}

func (a *app) flushLog() {
	if a.log != nil {
		a.log.Close()
	}
}

// notef writes a note to standard error.
func (a *app) notef(format string, args ...any) {
	_, _ = fmt.Fprintln(a.stderr, phrase.Visible(fmt.Sprintf(format, args...)))
}

// exitCode maps an error to its exit code.
func (a *app) exitCode(err error) int {
	var coded *exitError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case !a.running:
		return exitUsage
	case errors.Is(err, supervise.ErrEnded):
		return exitRefused
	}
	if _, denied := store.Denied(err); denied || broker.Denied(err) {
		return exitRefused
	}
	switch store.ClassOf(err) {
	case store.ClassUnreachable, store.ClassUnable:
		return exitUnreachable
	case store.ClassRefused, store.ClassConflict:
		return exitRefused
	default:
		return exitFailed
	}
}

func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "; ")
}

// furtherOutputs annotates a command with an additional output format.
const furtherOutputs = "outputs"

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "attune-executor",
		Short: "Run and operate Attune executions",
		Long: "attune-executor is the engine that runs Attune executions, its reference worker, and the commands\n" +
			"that operate both.\n\n" +
			"Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 refused, 4 a server is unreachable.",
		Example: "  attune-executor migrate up && attune-executor serve\n" +
			"  attune-executor run core.echo -p message=hi --wait",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          a.bare,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.running = true
			if further := cmd.Annotations[furtherOutputs]; a.output != "" && a.output == further {
				return nil
			}
			if !slices.Contains([]string{"table", "json", "yaml"}, a.output) {
				return usageErrorf("output format %q is unknown: use table, json or yaml", a.output)
			}
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.configPath, "config", "c", "", "configuration file (default $ATTUNE_CONFIG)")
	flags.StringVarP(&a.logLevel, "log-level", "l", "",
		"debug, info, warn or error (default info for serve and worker, else warn)")
	flags.StringVar(&a.logFormat, "log-format", "auto", "auto, json or text")
	flags.StringVarP(&a.output, "output", "o", "table", "table, json or yaml")
	words(root, "output", "table", "json", "yaml")
	words(root, "log-format", "auto", "json", "text")
	words(root, "log-level", "debug", "info", "warn", "error")
	root.AddCommand(
		newServeCommand(a), newWorkerCommand(a), newMigrateCommand(a),
		newRunCommand(a), newExecutionCommand(a), newWorkflowCommand(a), newQueueCommand(a), newDeadLettersCommand(a),
		newWorkersCommand(a), newConfigCommand(a), newVersionCommand(a),
		newApplyCommand(a), newEmitCommand(a), newEventCommand(a), newEnforcementCommand(a), newRuleCommand(a),
		newPackCommand(a), newActionCommand(a), newTriggerCommand(a), newPolicyCommand(a), newInquiryCommand(a),
		newDoctorCommand(a), newHealthCommand(a), newRolesCommand(a),
		newAlertsCommand(a),
	)
	a.addActs(root)
	return root
}

// bare runs the program without a command. The units of an existing installation start its executor so, with a
// configuration: it serves. At a terminal it prints the help instead, unless a flag names the configuration.
func (a *app) bare(cmd *cobra.Command, _ []string) error {
	configured := slices.ContainsFunc(a.environ, func(entry string) bool {
		return strings.HasPrefix(entry, config.PathVariable+"=") || strings.HasPrefix(entry, "ATTUNE__")
	})
	terminal := interactive(cmd.InOrStdin())
	switch {
	case a.configPath != "" || configured && !terminal:
		return a.serve(cmd, false)
	case terminal:
		return cmd.Help()
	}
	return usageErrorf("a command is missing: `attune-executor serve` runs the engine, `attune-executor -h` lists all")
}

func (a *app) logger(level string) (*slog.Logger, error) {
	if a.logLevel != "" {
		level = a.logLevel
	}
	logger, err := telemetry.NewLogger(a.stderr, level, a.logFormat)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return logger, nil
}
