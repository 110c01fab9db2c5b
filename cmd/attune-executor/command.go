package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// group makes a command that only has subcommands.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// reading makes a command that prints what it reads from the database. check validates its flags
// before.
func reading[V any](a *app, cmd *cobra.Command, check func() error, read func(c *client, args []string) (V, error),
	text func(w *page, value V),
) *cobra.Command {
	run := a.connected(func(c *client, args []string) error {
		value, err := read(c, args)
		if err != nil {
			return err
		}
		return c.show(value, func(w *page) { text(w, value) })
	})
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// showing makes a command `show ID`.
func showing[V any](a *app, cmd *cobra.Command, k kind, read func(c *client, ctx context.Context, id int64) (V, error),
	text func(w *page, value V),
) *cobra.Command {
	var id int64
	what, _, _ := strings.Cut(k.what, ",")
	cmd.Args = oneArg("the id of " + what)
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		id, err = k.id(args[0])
		return err
	}
	return reading(a, cmd, unchecked, func(c *client, _ []string) (V, error) {
		value, err := read(c, c.cmd.Context(), id)
		if errors.Is(err, monitor.ErrNotFound) {
			err = k.missing(id)
		}
		return value, err
	}, text)
}

// reader adapts a read of the monitor.
func reader[V any](read func(m *monitor.Monitor, ctx context.Context, id int64) (V, error),
) func(*client, context.Context, int64) (V, error) {
	return func(c *client, ctx context.Context, id int64) (V, error) { return read(c.monitor().Monitor, ctx, id) }
}

func unchecked() error { return nil }

// showingRef makes a command `show REF`.
func showingRef[V any](a *app, cmd *cobra.Command, kind string,
	read func(m *monitor.Monitor, ctx context.Context, ref string) (V, error),
	text func(w *page, value V),
) *cobra.Command {
	return reading(a, cmd, unchecked, func(c *client, args []string) (V, error) {
		value, err := read(c.monitor().Monitor, c.cmd.Context(), args[0])
		if errors.Is(err, monitor.ErrNotFound) {
			err = missingRef(kind, args[0])
		}
		return value, err
	}, text)
}

func missingRef(kind, ref string) error {
	return failedErrorf("there is no %s %s: `attune-executor %s list` shows them", kind, ref, kind)
}

// oneArg requires one argument and names it.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s needs %s", cmd.Name(), what)
		case 1:
			return nil
		}
		return fmt.Errorf("%s takes one argument, %s, not %d", cmd.Name(), what, len(args))
	}
}

// kind is a kind of thing with an id.
type kind struct {
	what string // with its article, for the error about an id
	hint string // where there is none with an id: which command shows them
}

var (
	anExecution = kind{what: "an execution", hint: "`attune-executor execution list` shows the newest"}
	aWorkflow   = kind{
		what: "a workflow, which is that of its execution",
		hint: "`attune-executor workflow list` shows the newest",
	}
	aDeadLetter   = kind{what: "a dead letter", hint: "`attune-executor dlq list` shows the newest"}
	anInquiry     = kind{what: "an inquiry", hint: "`attune-executor inquiry list --all` lists all inquiries"}
	aQueue        = kind{what: "a queue", hint: "`attune-executor queue list` shows them"}
	anEvent       = kind{what: "an event", hint: "`attune-executor event list` shows the newest"}
	anEnforcement = kind{what: "an enforcement", hint: "`attune-executor enforcement list` shows the newest"}
)

// name is the kind without its article.
func (k kind) name() string {
	name, _, _ := strings.Cut(k.what, ",")
	return strings.TrimPrefix(strings.TrimPrefix(name, "an "), "a ")
}

func (k kind) id(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not the id of %s", text, k.what)
	}
	return id, nil
}

func (k kind) ids(args []string) (ids []int64, err error) {
	ids = make([]int64, len(args))
	for i, text := range args {
		if ids[i], err = k.id(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (k kind) missing(id int64) error {
	return failedErrorf("there is no %s %d: %s", k.name(), id, k.hint)
}

// pageFlags adds the flags of a paged list.
func pageFlags(flags *pflag.FlagSet, limit *int, cursor *int64) {
	flags.IntVar(limit, "limit", 20, "how many to list")
	flags.Int64Var(cursor, "cursor", 0, "continue below this id")
}

// checkPage checks the flags of a list before the command connects.
func checkPage(limit int, filters ...interface{ Check() error }) error {
	if limit < 1 {
		return usageErrorf("--limit must be at least 1")
	}
	for _, filter := range filters {
		if err := filter.Check(); err != nil {
			return usageErrorf("%w", err)
		}
	}
	return nil
}

// waitFlags are the flags of a command that can wait.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (f *waitFlags) add(flags *pflag.FlagSet, wait string) {
	flags.BoolVar(&f.wait, "wait", false, wait)
	flags.Var(phrase.SpanFlag{To: &f.timeout}, "timeout", "how long to wait at most, such as 10m; 0 for no limit")
}

func (f *waitFlags) check() error {
	switch {
	case f.timeout > 0 && !f.wait:
		return usageErrorf("--timeout needs --wait")
	}
	return nil
}

// words completes a flag with a fixed set of words.
func words(cmd *cobra.Command, flag string, list ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

// some requires one id or several.
func some(k kind) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs the id of %s, or several", cmd.Name(), k.what)
		}
		return nil
	}
}

func idRange(text string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	from, err = strconv.ParseInt(first, 10, 64)
	to, lastErr := strconv.ParseInt(last, 10, 64)
	if err != nil || lastErr != nil || from < 1 || to < from {
		return 0, 0, usageErrorf("%q is not a range of ids: write it as 1468..1767", text)
	}
	return from, to, nil
}
