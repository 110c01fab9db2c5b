package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/lab/demo"
)

func newDemoCommand(a *app) *cobra.Command {
	cfg, noFaults := demo.Config{}, false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo: servers, replicas, workers, traffic and faults",
		Long: "Start a private PostgreSQL and RabbitMQ, two engine replicas and four workers, send live traffic,\n" +
			"inject faults, and open the dashboard. Without a terminal it runs for DEMO_SECONDS (default 45),\n" +
			"prints a line a second and a summary, and succeeds only if every requested execution has ended as\n" +
			"expected, every fault happened and every invariant holds. Everything is stopped at the end; the data\n" +
			"and logs stay in the folder for the next demo.",
		Example: "  attune-lab demo\n  DEMO_SECONDS=20 attune-lab demo --rate 200 </dev/null | cat",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Faults = !noFaults
			return a.demo(cmd, cfg)
		},
	}
	demoFlags(cmd, &cfg)
	cmd.Flags().BoolVar(&noFaults, "no-faults", false, "inject no faults")
	return cmd
}

func newPracticeCommand(a *app) *cobra.Command {
	cfg := demo.Config{}
	cmd := &cobra.Command{
		Use:   "practice NAME",
		Short: "Practise one incident in the demo",
		Long: "Run the demo with one incident, to be ended at the dashboard, and say whether it has ended. The\n" +
			"incidents are in docs/incidents.md: " + strings.Join(demo.Practices(), ", ") + ".",
		Example:   "  attune-lab practice deaf-worker",
		ValidArgs: demo.Practices(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(demo.Practices(), args[0]) {
				return fmt.Errorf("practice needs one incident: there are %s", strings.Join(demo.Practices(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Practice = args[0]
			return a.demo(cmd, cfg)
		},
	}
	demoFlags(cmd, &cfg)
	return cmd
}

func demoFlags(cmd *cobra.Command, cfg *demo.Config) {
	flags := cmd.Flags()
	flags.StringVar(&cfg.Dir, "dir", filepath.Join(".attune", "demo"), "folder of the demo's servers and logs")
	flags.IntVar(&cfg.Rate, "rate", demo.RateDefault, "executions requested a second")
	flags.IntVar(&cfg.Replicas, "replicas", demo.ReplicasDefault, "engine replicas")
	flags.IntVar(&cfg.Workers, "workers", demo.WorkersDefault, "workers")
}

func (a *app) demo(cmd *cobra.Command, cfg demo.Config) error {
	if cfg.Rate < 1 || cfg.Replicas < 2 || cfg.Workers < 2 {
		return usageErrorf("the demo needs a rate of at least 1, two replicas and two workers")
	}
	logger, err := a.logger("warn")
	if err != nil {
		return err
	}
	cfg.Logger, cfg.Out = logger, cmd.OutOrStdout()
	tui := ""
	if term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stdin.Fd())) {
		tui, _ = beside("attune-tui") // without it, lines are printed
	}
	if tui == "" {
		if cfg.Duration, err = demoDuration(a.environ); err != nil {
			return err
		}
		if cfg.Duration >= demo.DurationDefault && cfg.Rate >= demo.RateDefault {
			cfg.AtLeast = demo.AtLeastDefault
		}
	} else {
		cfg.AnswerAfter = peopleAnswerAfter
	}
	if cfg.Binary, err = beside("attune-executor"); err != nil {
		return err
	}
	ctx, stop := supervise.Interruptible(cmd.Context())
	defer stop()
	return showDemo(ctx, cfg, tui)
}

// peopleAnswerAfter is how long a person at the dashboard may think before the demo answers a
// question itself.
const peopleAnswerAfter = 20 * time.Second

func demoDuration(environ []string) (time.Duration, error) {
	text := ""
	for _, variable := range environ {
		if value, ok := strings.CutPrefix(variable, "DEMO_SECONDS="); ok {
			text = value
		}
	}
	if text == "" {
		return demo.DurationDefault, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 {
		return 0, usageErrorf("DEMO_SECONDS is %q; it must be a number of seconds", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// showDemo runs the demo with the dashboard, or prints lines.
func showDemo(ctx context.Context, cfg demo.Config, tui string) (err error) {
	d, err := demo.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop(context.WithoutCancel(ctx))) }()
	if tui == "" {
		return d.Run(ctx)
	}
	return withDashboard(ctx, d, tui, cfg.Out)
}

// withDashboard runs the dashboard in the foreground; when it ends, the traffic ends and the
// summary follows.
func withDashboard(ctx context.Context, d *demo.Demo, tui string, out io.Writer) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	d.Mute()
	verdict := make(chan error, 1)
	go func() { verdict <- d.Run(ctx) }()
	screen := exec.CommandContext(ctx, tui)
	screen.Env = append(os.Environ(), d.DashboardEnv()...)
	screen.Stdin, screen.Stdout, screen.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := screen.Run()
	d.Unmute()
	if err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(out, "the dashboard ended: %v\n", err)
	}
	quit()
	return <-verdict
}
