package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/lab/devstack"
)

// stackOptions are the flags of the stack commands.
type stackOptions struct {
	*app
	dir   string
	fast  bool
	stats time.Duration
	hard  bool
	wipe  bool
}

func newStackCommand(a *app) *cobra.Command {
	o := &stackOptions{app: a}
	up := stackCommand("up", "Start the servers and leave them running",
		"attune-lab stack up --dir .attune/stack", func(cmd *cobra.Command) error {
			stack, err := devstack.Up(cmd.Context(),
				devstack.Config{Dir: o.dir, Detached: true, Durable: !o.fast, StatsInterval: o.stats})
			if err != nil {
				return err
			}
			return a.printStack(cmd, stack)
		})
	up.Flags().BoolVar(&o.fast, "fast", false, "never wait for the disk; the data is lost when the machine stops")
	up.Flags().Var(phrase.SpanFlag{To: &o.stats}, "stats-interval",
		"how often the broker refreshes its statistics (0: every 5s)")
	down := stackCommand("down", "Stop the servers; the data stays", "attune-lab stack down --dir .attune/stack",
		func(cmd *cobra.Command) error {
			return o.end(cmd, "stop", "stopped", func(stack *devstack.Stack) error {
				if o.wipe {
					return stack.Reset(cmd.Context())
				}
				return stack.Down(cmd.Context(), o.hard)
			})
		})
	down.Flags().BoolVar(&o.hard, "hard", false, "stop at once instead of in order (the broker takes six seconds)")
	down.Flags().BoolVar(&o.wipe, "wipe", false, "stop at once and remove the data")
	cmd := &cobra.Command{
		Use:   "stack",
		Short: "Run a private PostgreSQL and RabbitMQ for development",
		Long: "Run a private PostgreSQL and RabbitMQ for development: on 127.0.0.1, on free ports, with all data in\n" +
			"one folder. It works with and without root, and touches no other server of the machine. Each folder\n" +
			"holds one stack.",
		Example: "  attune-lab stack up\n  eval \"$(attune-lab stack env)\"\n  attune-executor serve",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(up, down,
		stackCommand("status", "Show the servers, their addresses and logs; fails unless both run",
			"attune-lab stack status -o json", o.status),
		stackCommand("env", "Print export lines that point the other commands to the stack",
			"eval \"$(attune-lab stack env)\"", func(cmd *cobra.Command) error {
				stack, err := o.started(cmd)
				if err != nil {
					return err
				}
				_, err = io.WriteString(cmd.OutOrStdout(), stack.Env())
				return err
			}),
		stackCommand("reset", "Stop the servers at once and remove their data",
			"attune-lab stack reset --dir .attune/stack", func(cmd *cobra.Command) error {
				return o.end(cmd, "reset", "removed",
					func(stack *devstack.Stack) error { return stack.Reset(cmd.Context()) })
			}))
	cmd.PersistentFlags().StringVar(&o.dir, "dir", devstack.DirDefault, "folder of the stack")
	return cmd
}

func stackCommand(use, short, example string, run func(cmd *cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  " + example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
}

func (o *stackOptions) end(cmd *cobra.Command, verb, done string, end func(stack *devstack.Stack) error) error {
	stack, err := devstack.Attach(cmd.Context(), devstack.Config{Dir: o.dir})
	if errors.Is(err, devstack.ErrNoStack) {
		return printLine(cmd, "nothing to %s in %s", verb, o.dir)
	}
	if err == nil {
		err = end(stack)
	}
	if err != nil {
		return err
	}
	return printLine(cmd, "%s the stack in %s", done, stack.Dir())
}

// started attaches to a stack, which must exist.
func (o *stackOptions) started(cmd *cobra.Command) (*devstack.Stack, error) {
	stack, err := devstack.Attach(cmd.Context(), devstack.Config{Dir: o.dir})
	if errors.Is(err, devstack.ErrNoStack) {
		return nil, fmt.Errorf("%w: start one with `attune-lab stack up`", err)
	}
	return stack, err
}

func (o *stackOptions) status(cmd *cobra.Command) error {
	stack, err := o.started(cmd)
	if err != nil {
		return err
	}
	if err := o.printStack(cmd, stack); err != nil {
		return err
	}
	if !stack.Status().Running() {
		return fmt.Errorf("the stack in %s is not running: start it with `attune-lab stack up`", stack.Dir())
	}
	return nil
}

func printLine(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// printStack prints the status in the format of -o.
func (a *app) printStack(cmd *cobra.Command, stack *devstack.Stack) error {
	status := stack.Status()
	return a.print(cmd, status, func(w io.Writer) {
		if status.Moved != "" {
			asked, _ := filepath.Abs(cmd.Flag("dir").Value.String()) // only to be shown
			rowf(w, "note: not in %s, because %s", asked, status.Moved)
		}
		line := func(name, text string) { rowf(w, "%-12s%s", name, text) }
		line("folder", status.Dir)
		line("PostgreSQL", serverLine(status.Postgres))
		line("", status.DatabaseURL)
		line("RabbitMQ", serverLine(status.Broker))
		line("", status.AMQPURL)
		line("management", status.ManagementURL)
	})
}

func serverLine(server devstack.ServerStatus) string {
	if !server.Running {
		return "stopped, log " + server.Log
	}
	return fmt.Sprintf("running, port %d, process %d, log %s", server.Port, server.PID, server.Log)
}
