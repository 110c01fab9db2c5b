package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/bench/datapath"
	"github.com/attune-go/attune/core/devstack"
)

// benchShort compares the data path with the one-at-a-time design. It prints the ratios also
// when one of them is too low.
func (a *app) benchShort(cmd *cobra.Command, o benchOptions) (err error) {
	logger, err := a.logger("warn")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.database == "" {
		stack, started := devstack.Up(ctx, devstack.Config{Dir: o.dir, Durable: true, Logger: logger})
		if started != nil {
			return fmt.Errorf("start the servers: %w", started)
		}
		defer func() { err = errors.Join(err, stack.Reset(context.WithoutCancel(ctx))) }()
		if err := stack.KillBroker(ctx); err != nil {
			return fmt.Errorf("stop the broker, which is not measured: %w", err)
		}
		o.database = stack.DatabaseURL()
	}
	list, slower := datapath.Short(ctx, o.database, logger)
	if slower != nil && !errors.Is(slower, datapath.ErrSlower) {
		return fmt.Errorf("measure the data path: %w", slower)
	}
	err = a.print(cmd, list, func(w io.Writer) error { datapath.PrintShort(w, list); return nil })
	return errors.Join(slower, err)
}
