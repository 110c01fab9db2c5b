// Command attune-lab is for people who try, learn, measure and develop Attune: private servers, a demo with incidents
// to practise, measurements, and rehearsals of an adoption. No installation needs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/yamldoc"
	"github.com/attune-go/attune/lab/devstack"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// The exit codes are those of attune-executor.
const (
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

// app has the global flags and the streams of all commands.
type app struct {
	output  string
	environ []string
	stderr  io.Writer
	running bool // a command's own code has begun; errors before it are usage
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{environ: environ, stderr: stderr}
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	code := exitFailed
	if coded, ok := errors.AsType[*exitError](err); ok {
		code = coded.code
	} else if !a.running {
		code, err = exitUsage, fmt.Errorf("%w: see `%s -h`", err, cmd.CommandPath())
	}
	if !supervise.NoReader(err) {
		_, _ = fmt.Fprintln(stderr, phrase.Visible("error: "+strings.Join(strings.Fields(err.Error()), " ")))
	}
	return code
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "attune-lab",
		Short: "Try, practise, measure and rehearse Attune on private servers",
		Long: "attune-lab starts private servers on this machine, and runs the demo, incidents to practise,\n" +
			"measurements and rehearsals on them. It needs attune-executor and attune-tui in its own folder.\n\n" +
			"Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 a server is unreachable.",
		Example: "  attune-lab demo\n  attune-lab stack up && attune-executor migrate up && attune-executor serve",
		Version: programVersion(),
		Args:    cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.running = true
			if !slices.Contains(formats, a.output) {
				return usageErrorf("output format %q is unknown: use table, json or yaml", a.output)
			}
			return nil
		},
	}
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table", "table, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(newDemoCommand(a), newPracticeCommand(a), newStackCommand(a), newBenchCommand(a),
		newRehearseCommand(a))
	return root
}

// version may be set by the linker (-X main.version=…).
var version string

func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		return info.Main.Version
	}
	return version
}

var formats = []string{"table", "json", "yaml"}

// logger writes to standard error.
func (a *app) logger(level string) (*slog.Logger, error) {
	return telemetry.NewLogger(a.stderr, level, "auto")
}

// onServers runs a command on private servers, which it starts and removes.
func (a *app) onServers(cmd *cobra.Command, cfg devstack.Config, level string,
	run func(ctx context.Context, stack *devstack.Stack) error,
) (err error) {
	if cfg.Logger, err = a.logger(level); err != nil {
		return err
	}
	ctx, stop := supervise.Interruptible(cmd.Context())
	defer stop()
	return devstack.With(ctx, cfg, func(stack *devstack.Stack) error { return run(ctx, stack) })
}

// beside is the path of a program in the folder of this one.
func beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Errorf("%s is not in %s: build or install all three programs there", name, filepath.Dir(self))
	}
	return path, nil
}

// print writes a value in the format of -o; table writes the text format, with tabs between cells.
func (a *app) print(cmd *cobra.Command, value any, table func(w io.Writer)) error {
	var text string
	var err error
	switch a.output {
	case "table":
		var out strings.Builder
		table(&out)
		_, err := io.WriteString(cmd.OutOrStdout(), phrase.Align(out.String()))
		return err
	case "json":
		text, err = jsonvalue.Indented(value)
		text += "\n"
	case "yaml":
		text, err = yamldoc.Write(value)
	}
	if err == nil {
		_, err = io.WriteString(cmd.OutOrStdout(), phrase.JSON(text))
	}
	return err
}

// row writes a line of cells, without terminal control characters.
func row(w io.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			_, _ = io.WriteString(w, "\t") // print collects in memory
		}
		_, _ = io.WriteString(w, phrase.Line(fmt.Sprint(cell)))
	}
	_, _ = io.WriteString(w, "\n")
}

func rowf(w io.Writer, format string, args ...any) { row(w, fmt.Sprintf(format, args...)) }
