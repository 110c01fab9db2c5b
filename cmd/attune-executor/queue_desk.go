package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
)

// operator is who acts, as audits name them.
func operator() string {
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// desk is what one act needs: the triage, and what publishes its messages.
type desk struct {
	*client
	*triage.Triage

	link     *broker.Broker // nil: nothing is published
	returned *atomic.Bool   // a message reached no queue
	stop     func()
}

// openDesk connects; publishing starts a relay of its own, whose broker may be
// away.
func (a *app) openDesk(cmd *cobra.Command, publishing bool) (*desk, error) {
	c, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	d := &desk{client: c, returned: &atomic.Bool{}, stop: c.store.Close}
	cfg := triage.Config{
		Actor: operator(), Source: "attune-executor",
		HeartbeatStaleAfter: c.cfg.Executor.StaleAfter(), WithoutStats: !c.cfg.Executor.Queue.EnableMetrics,
	}
	if !publishing {
		d.Triage = triage.New(cfg, c.store, nil)
		return d, nil
	}
	quiet := slog.New(slog.DiscardHandler) // a broker that is away is reported in one line, not by its reconnects
	link := broker.New(brokerConfig(c.cfg, cmd.CommandPath()), quiet, broker.NewMetrics(nil))
	relay := outbox.New(
		outbox.Config{SweepInterval: time.Hour, FlushTimeout: time.Second, Undeliverable: noteReturned(d.returned)},
		c.store, link.Publisher(), quiet, outbox.NewMetrics(prometheus.NewRegistry()))
	patient, cancel := context.WithTimeout(cmd.Context(), publishPatience)
	defer cancel()
	if err := link.Start(patient); err != nil { // without a broker it returns when patience ends, and connects later
		c.store.Close()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	if err := relay.Start(cmd.Context()); err != nil {
		link.Stop()
		c.store.Close()
		return nil, fmt.Errorf("start publishing: %w", err)
	}
	d.link, d.stop = link, func() { relay.Stop(); link.Stop(); c.store.Close() }
	d.Triage = triage.New(cfg, c.store, relay)
	return d, nil
}

// The ways of an act's messages, as receipts say.
const (
	deliveryNone      = "none"      // there were none
	deliveryPublished = "published" // the broker has them
	deliveryStored    = "stored"    // a running engine publishes them
)

// delivery waits until the broker has confirmed the messages of an act, for
// publishPatience at most.
func (d *desk) delivery(ctx context.Context, a *app, sent triage.Sent) string {
	if len(sent.Rows) == 0 {
		return deliveryNone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishPatience)
	defer cancel()
	submitter := submit.New(d.store, nil)
	for _, row := range sent.Rows {
		if d.link.State() != broker.StateConnected || submitter.AwaitPublished(ctx, row) != nil {
			a.notef("the broker %s does not answer: what follows from this is stored and will be published by a running engine",
				config.MaskURL(d.cfg.MessageQueue.URL))
			return deliveryStored
		}
	}
	if d.returned.Load() {
		a.notef("no engine has run on this broker yet: what follows from this is stored until one does")
		return deliveryStored
	}
	return deliveryPublished
}

// actError gives errors of an act their exit codes and what to do.
func (d *desk) actError(ctx context.Context, ref string, err error) error {
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		err = target // what was being done when it was found says nothing more
	}
	switch {
	case errors.Is(err, triage.ErrNoAction):
		if _, hint := submit.New(d.store, nil).Action(ctx, ref); hint != nil {
			return runError(hint)
		}
		return err // made just now: the same again succeeds
	case errors.Is(err, triage.ErrGroup), errors.Is(err, triage.ErrLimit):
		return usageErrorf("%w", err)
	case errors.Is(err, triage.ErrNoQueue):
		return failedErrorf("%w: `attune-executor queue list` shows those that are there", err)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was done is unknown, the same again is safe", err)
	}
	return err
}
