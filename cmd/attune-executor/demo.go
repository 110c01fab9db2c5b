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

	"github.com/attune-go/attune/core/demo"
	"github.com/attune-go/attune/core/supervise"
)

func newDemoCommand(a *app) *cobra.Command {
	var (
		cfg      = demo.Config{Faults: true}
		noFaults bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo: servers, replicas, workers, traffic and faults",
		Long: "Start a private PostgreSQL and RabbitMQ, two engine replicas and four workers, send live traffic,\n" +
			"inject faults, and open the dashboard. Without a terminal it runs for DEMO_SECONDS (default 45),\n" +
			"prints a line a second and a summary, and succeeds only if every requested execution has ended as\n" +
			"expected, every fault happened and every invariant holds. Everything is stopped at the end; the data\n" +
			"and logs stay in the folder for the next demo.",
		Example: "  attune-executor demo\n  DEMO_SECONDS=20 attune-executor demo --rate 200 </dev/null | cat\n" +
			"  attune-executor demo --incident deaf-worker",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Faults = !noFaults
			return a.demo(cmd, cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Dir, "dir", filepath.Join(".attune", "demo"), "folder of the demo's servers and logs")
	flags.IntVar(&cfg.Rate, "rate", demo.RateDefault, "executions requested a second")
	flags.IntVar(&cfg.Replicas, "replicas", demo.ReplicasDefault, "engine replicas")
	flags.IntVar(&cfg.Workers, "workers", demo.WorkersDefault, "workers")
	flags.StringVar(&cfg.Practice, "incident", "", "practise one incident: "+strings.Join(demo.Practices(), ", "))
	words(cmd, "incident", demo.Practices()...)
	flags.BoolVar(&noFaults, "no-faults", false, "inject no faults")
	return cmd
}

func (a *app) demo(cmd *cobra.Command, cfg demo.Config) error {
	if cfg.Rate < 1 || cfg.Replicas < 2 || cfg.Workers < 2 {
		return usageErrorf("the demo needs a rate of at least 1, two replicas and two workers")
	}
	if cfg.Practice != "" && !slices.Contains(demo.Practices(), cfg.Practice) {
		return usageErrorf("--incident %s: there are %s", cfg.Practice, strings.Join(demo.Practices(), ", "))
	}
	logger, err := a.logger("warn")
	if err != nil {
		return err
	}
	if cfg.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cfg.Logger, cfg.Out = logger, cmd.OutOrStdout()
	tui := ""
	if term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stdin.Fd())) {
		tui = dashboardBinary(cfg.Binary)
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
	ctx, stop := supervise.Interruptible(cmd.Context())
	defer stop()
	return showDemo(ctx, cfg, tui)
}

// peopleAnswerAfter is how long a person at the dashboard may think before the demo answers a
// question itself.
const peopleAnswerAfter = 20 * time.Second

// dashboardBinary is the path of the dashboard beside this program, empty if it does not exist.
func dashboardBinary(self string) string {
	path := filepath.Join(filepath.Dir(self), "attune-tui")
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}

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
