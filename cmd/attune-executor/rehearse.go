package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/devstack"
	"github.com/attune-go/attune/core/installation/rehearsal"
)

func newMigrateRehearseCommand(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "rehearse",
		Short: "Adopt an example installation on private servers, and say what became of each thing in it",
		Long: "Start a private PostgreSQL and RabbitMQ, build an existing installation in the state in which installations are\n" +
			"found, adopt it, serve, hand it back, and say of each execution, workflow, question, event and message how it ended.\n" +
			"Nothing outside --dir is touched. It succeeds only if everything ended as it should, and takes about two minutes.",
		Example: "  attune-executor migrate rehearse",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.rehearse(cmd, dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", filepath.Join(".attune", "rehearsal"), "folder of the private servers")
	return cmd
}

type rehearsed struct {
	AdoptedSeconds    float64             `json:"adopted_seconds"`
	HandedBackSeconds float64             `json:"handed_back_seconds"`
	Outcomes          []rehearsal.Outcome `json:"outcomes"`
}

func (a *app) rehearse(cmd *cobra.Command, dir string) (err error) {
	logger, err := a.logger("error")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.PrintErrf("starting a private PostgreSQL and RabbitMQ in %s\n", dir)
	stack, err := devstack.Up(ctx, devstack.Config{Dir: dir, Logger: logger})
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	defer func() { err = errors.Join(err, stack.Reset(context.WithoutCancel(ctx))) }()
	report, err := rehearsal.Run(ctx, rehearsal.Config{
		DatabaseURL: stack.DatabaseURL(), AMQPURL: stack.AMQPURL(), ManagementURL: stack.ManagementURL(),
		Out: cmd.ErrOrStderr(), Logger: logger,
	})
	out := rehearsed{
		AdoptedSeconds: report.Adopted.Seconds(), HandedBackSeconds: report.HandedBack.Seconds(), Outcomes: report.Outcomes,
	}
	failed := len(report.Failed())
	printed := a.write(cmd, out, func(w *page) {
		for _, o := range out.Outcomes {
			mark, name := "ok", ""
			if !o.OK {
				mark = "NOT OK, wanted " + o.Want
			}
			if o.ID != 0 {
				name = fmt.Sprintf("execution %d", o.ID)
			}
			w.row(name, o.What, o.Got, mark)
		}
		w.rowf("adopted in %.1f s, handed back in %.1f s; %d of %d as they should be",
			out.AdoptedSeconds, out.HandedBackSeconds, len(out.Outcomes)-failed, len(out.Outcomes))
	})
	if err := errors.Join(err, printed); err != nil {
		return err
	}
	if failed > 0 {
		return failedErrorf("%d of %d did not become what they should", failed, len(out.Outcomes))
	}
	return nil
}
