package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/devstack"
)

const stackDirDefault = devstack.DirDefault

// stackOptions are the flags of the stack commands.
type stackOptions struct {
	dir   string
	fast  bool
	stats time.Duration
	hard  bool
	wipe  bool
}

// newStackCommand is `stack`: private servers for development.
func newStackCommand() *cobra.Command {
	options := &stackOptions{}
	cmd := &cobra.Command{
		Use:   "stack",
		Short: "Run a private PostgreSQL and RabbitMQ for development",
		Long: "Run a private PostgreSQL and RabbitMQ for development: on 127.0.0.1, on free ports, with all data in one folder.\n" +
			"It works as root or not and touches no server of the machine. One folder is one stack, however often it is started.",
		Example: "  attune-executor stack up\n  eval \"$(attune-executor stack env)\"\n  attune-executor serve",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&options.dir, "dir", stackDirDefault, "folder of the stack")
	cmd.AddCommand(newStackUpCommand(options), newStackDownCommand(options), newStackStatusCommand(options),
		newStackEnvCommand(options), newStackResetCommand(options))
	return cmd
}

func newStackUpCommand(options *stackOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "up",
		Short:   "Start the servers and leave them running",
		Example: "  attune-executor stack up --dir .attune/stack",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stack, err := devstack.Up(cmd.Context(), devstack.Config{
				Dir: options.dir, Detached: true, Durable: !options.fast, StatsInterval: options.stats,
			})
			if err != nil {
				return err
			}
			return printStack(cmd, stack)
		},
	}
	cmd.Flags().BoolVar(&options.fast, "fast", false, "never wait for the disk; what is stored is lost when the machine stops")
	cmd.Flags().DurationVar(&options.stats, "stats-interval", 0, "how often the broker refreshes its statistics (0: every 5s)")
	return cmd
}

func newStackDownCommand(options *stackOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "Stop the servers; the data stays",
		Example: "  attune-executor stack down --dir .attune/stack",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stack, err := attachStack(cmd, options)
			if errors.Is(err, devstack.ErrNoStack) {
				return printLine(cmd, "nothing to stop in %s", options.dir)
			}
			if err != nil {
				return err
			}
			if options.wipe {
				err = stack.Reset(cmd.Context())
			} else {
				err = stack.Down(cmd.Context(), options.hard)
			}
			if err != nil {
				return err
			}
			return printLine(cmd, "stopped the stack in %s", stack.Dir())
		},
	}
	cmd.Flags().BoolVar(&options.hard, "hard", false, "stop at once instead of in order (the broker takes six seconds)")
	cmd.Flags().BoolVar(&options.wipe, "wipe", false, "stop at once and remove the data")
	return cmd
}

func newStackStatusCommand(options *stackOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show what runs, where, and its logs; fails unless both servers run",
		Example: "  attune-executor stack status -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stack, err := runningStack(cmd, options)
			if err != nil {
				return err
			}
			if err := printStack(cmd, stack); err != nil {
				return err
			}
			if !stack.Status().Running() {
				return fmt.Errorf("the stack in %s is not running: start it with `attune-executor stack up`", stack.Dir())
			}
			return nil
		},
	}
}

func newStackEnvCommand(options *stackOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "env",
		Short:   "Print export lines that point the other commands to the stack",
		Example: "  eval \"$(attune-executor stack env)\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stack, err := runningStack(cmd, options)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), stack.Env())
			return err
		},
	}
}

func newStackResetCommand(options *stackOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "reset",
		Short:   "Stop the servers at once and remove everything they stored",
		Example: "  attune-executor stack reset --dir .attune/stack",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stack, err := attachStack(cmd, options)
			if errors.Is(err, devstack.ErrNoStack) {
				return printLine(cmd, "nothing to reset in %s", options.dir)
			}
			if err != nil {
				return err
			}
			if err := stack.Reset(cmd.Context()); err != nil {
				return err
			}
			return printLine(cmd, "removed the stack in %s", stack.Dir())
		},
	}
}

func attachStack(cmd *cobra.Command, options *stackOptions) (*devstack.Stack, error) {
	return devstack.Attach(cmd.Context(), devstack.Config{Dir: options.dir})
}

// runningStack attaches to a stack that must have been started.
func runningStack(cmd *cobra.Command, options *stackOptions) (*devstack.Stack, error) {
	stack, err := attachStack(cmd, options)
	if errors.Is(err, devstack.ErrNoStack) {
		return nil, fmt.Errorf("%w: start one with `attune-executor stack up`", err)
	}
	return stack, err
}

func printLine(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// printStack prints the status in the format of the global -o flag.
func printStack(cmd *cobra.Command, stack *devstack.Stack) error {
	status, out := stack.Status(), cmd.OutOrStdout()
	format := "table"
	if flag := cmd.Flag("output"); flag != nil {
		format = flag.Value.String()
	}
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(status)
	case "yaml":
		return yaml.NewEncoder(out).Encode(status)
	}
	if status.Moved != "" {
		asked, _ := filepath.Abs(cmd.Flag("dir").Value.String()) // only to be shown
		if err := printLine(cmd, "note: not in %s, because %s", asked, status.Moved); err != nil {
			return err
		}
	}
	return printLine(cmd, "folder      %s\nPostgreSQL  %s\n            %s\nRabbitMQ    %s\n            %s\nmanagement  %s",
		status.Dir, serverLine(status.Postgres), status.DatabaseURL, serverLine(status.Broker), status.AMQPURL, status.ManagementURL)
}

func serverLine(server devstack.ServerStatus) string {
	if !server.Running {
		return "stopped, log " + server.Log
	}
	return fmt.Sprintf("running, port %d, process %d, log %s", server.Port, server.PID, server.Log)
}
