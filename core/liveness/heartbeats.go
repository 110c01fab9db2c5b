package liveness

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// page is the number of workers in one statement.
const page = 500

// HeartbeatsConfig configures the heartbeat monitor.
type HeartbeatsConfig struct {
	// Interval is the pause between ticks. Default 60 s.
	Interval time.Duration
	// StaleAfter is the heartbeat age from which a worker counts as dead. Default 90 s.
	StaleAfter time.Duration
	// Unsure reports that missing heartbeats prove nothing, because the database was unreachable at
	// times. The monitor then marks no worker inactive. Nil means never.
	Unsure func() bool
}

func (c HeartbeatsConfig) withDefaults() HeartbeatsConfig {
	c.Interval = supervise.OrDefault(c.Interval, time.Minute)
	c.StaleAfter = supervise.OrDefault(c.StaleAfter, 90*time.Second)
	if c.Unsure == nil {
		c.Unsure = func() bool { return false }
	}
	return c
}

// Heartbeats marks silent workers inactive, and active again when they resume. Every replica may
// run it: the statement guards the state that it changes, so each transition happens and is logged
// once. A worker that is not cordoned also gets a core.alert event, in the same transaction.
type Heartbeats struct {
	*supervise.Loop

	cfg     HeartbeatsConfig
	store   *store.Store
	logger  *slog.Logger
	metrics *Metrics
}

// NewHeartbeats makes the monitor. metrics may be nil.
func NewHeartbeats(cfg HeartbeatsConfig, st *store.Store, logger *slog.Logger, metrics *Metrics,
	loops *supervise.Metrics,
) *Heartbeats {
	h := &Heartbeats{
		cfg: cfg.withDefaults(), store: st, logger: logger, metrics: cmp.Or(metrics, NewMetrics(nil)),
	}
	h.Loop = supervise.NewLoop(supervise.LoopConfig{
		Name: "heartbeats", Failure: "Failed to query active workers for heartbeat check", Interval: h.cfg.Interval,
		Timeout: 30 * time.Second, Jitter: 0.1,
		Tick: h.tick, Logger: logger, Metrics: loops,
	})
	return h
}

// Start implements supervise.Service.
func (h *Heartbeats) Start(ctx context.Context) error {
	h.logger.InfoContext(ctx, "Starting worker heartbeat monitor...")
	if err := h.Loop.Start(ctx); err != nil {
		return err
	}
	h.log(ctx, slog.LevelInfo,
		fmt.Sprintf("Worker heartbeat monitor started (check interval: %s, staleness threshold: %s)",
			seconds(h.cfg.Interval), seconds(h.cfg.StaleAfter)), "interval", h.cfg.Interval, "stale_after",
		h.cfg.StaleAfter)
	return nil
}

// log logs a published line, with the names in its text.
func (h *Heartbeats) log(ctx context.Context, level slog.Level, text string, args ...any) {
	h.logger.Log(ctx, level, text, args...) //nolint:sloglint // users look for these lines
}

// seconds formats a duration in seconds, as the published lines do.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%gs", math.Round(d.Seconds()*1000)/1000)
}

func (h *Heartbeats) tick(ctx context.Context) error {
	return counted(ctx, h.store, h.cfg.StaleAfter, h.metrics, h.mark)
}

// counted runs a tick and updates the gauges of workers, which are unknown after an error.
func counted(
	ctx context.Context, st *store.Store, staleAfter time.Duration, metrics *Metrics, tick func(context.Context) error,
) error {
	err := tick(ctx)
	var counts store.CountWorkersRow
	if err == nil {
		if counts, err = st.CountWorkers(ctx, staleAfter.Seconds()); err != nil {
			err = fmt.Errorf("count the workers: %w", err)
		}
	}
	if err != nil {
		metrics.unknown()
		return err
	}
	metrics.count(counts)
	return nil
}

// mark marks pages of workers until none is left.
func (h *Heartbeats) mark(ctx context.Context) error {
	total := 0
	for {
		var gone []store.DeactivateWorkersRow
		var back []store.ReactivateWorkersRow
		won, err := h.store.Alone(ctx, "heartbeats", "heartbeats", func(ctx context.Context, tx *store.Tx) (err error) {
			gone = nil
			if back, err = tx.ReactivateWorkers(ctx, h.cfg.StaleAfter.Seconds(), page); err != nil {
				return fmt.Errorf("reactivate workers: %w", err)
			}
			if h.cfg.Unsure() {
				return nil
			}
			gone, err = h.deactivate(ctx, tx, 0)
			return err
		})
		if store.Divisible(err) {
			if err = h.deactivateEach(ctx); err == nil {
				return nil // whatever is left, the next tick finds
			}
		}
		if err != nil {
			return err
		}
		if !won {
			break
		}
		h.logReactivated(ctx, back)
		h.logDeactivated(ctx, gone)
		total += len(gone)
		if len(gone) < page && len(back) < page {
			break
		}
	}
	if total > 0 {
		h.log(ctx, slog.LevelInfo, fmt.Sprintf("Deactivated %d worker(s) with stale heartbeats", total), "workers",
			total)
	}
	return nil
}

// deactivate marks a page of workers, or only one of them.
func (h *Heartbeats) deactivate(ctx context.Context, tx *store.Tx, single int64) ([]store.DeactivateWorkersRow, error) {
	gone, err := tx.DeactivateWorkers(ctx, h.cfg.StaleAfter.Seconds(), single, page)
	if err != nil {
		return nil, fmt.Errorf("deactivate workers: %w", err)
	}
	return gone, outbox.EmitAlerts(ctx, tx, nil, h.alerts(gone))
}

// deactivateEach marks workers in a transaction each, so that one that cannot be marked delays no other.
func (h *Heartbeats) deactivateEach(ctx context.Context) error {
	workers, err := h.store.FindSilentWorkers(ctx, h.cfg.StaleAfter.Seconds(), page)
	if err != nil {
		return fmt.Errorf("find silent workers: %w", err)
	}
	for _, w := range workers {
		var gone []store.DeactivateWorkersRow
		err := h.store.Tx(ctx, "heartbeats", func(ctx context.Context, tx *store.Tx) (err error) {
			gone, err = h.deactivate(ctx, tx, w.ID)
			return err
		})
		switch {
		case store.Divisible(err):
			h.log(ctx, slog.LevelError,
				fmt.Sprintf("Failed to deactivate worker %s (stale heartbeat): %v", w.Name, err), "worker", w.Name)
		case err != nil:
			return err
		default:
			h.logDeactivated(ctx, gone)
		}
	}
	return nil
}

// alerts are the core.alert events of newly marked workers. It skips cordoned workers, which an
// operator handles already, and workers whose row was inactive before.
func (h *Heartbeats) alerts(gone []store.DeactivateWorkersRow) []outbox.Alert {
	var alerts []outbox.Alert
	for i := range gone {
		w := &gone[i]
		if w.Cordoned || w.Previous == lifecycle.WorkerInactive {
			continue
		}
		reason, summary := "missing_heartbeat", fmt.Sprintf("Worker '%s' has no heartbeat and was marked inactive",
			w.Name)
		details := map[string]any{"worker_id": w.ID, "worker_name": w.Name, "worker_role": w.Role}
		if w.Silent >= 0 {
			reason = "stale_heartbeat"
			summary = fmt.Sprintf("Worker '%s' heartbeat is stale (%.0fs old), it was marked inactive", w.Name,
				w.Silent)
			details["heartbeat_age_seconds"] = int64(w.Silent)
			details["staleness_threshold_seconds"] = int64(h.cfg.StaleAfter.Seconds())
		}
		details["reason"] = reason
		component := "worker"
		if w.Role != "action" {
			component = w.Role + "_worker"
		}
		alerts = append(alerts, outbox.Alert{
			Severity: "error", Category: "worker_health", FailureType: "worker_" + reason, ComponentType: component,
			ComponentID: &w.ID, ComponentRef: &w.Name, WorkerRole: &w.Role, ObservedAt: w.Now.UTC(), Summary: summary,
			Details: details, CorrelationID: new(fmt.Sprintf("worker:%d:%s", w.ID, reason)),
		})
	}
	return alerts
}

func (h *Heartbeats) logDeactivated(ctx context.Context, gone []store.DeactivateWorkersRow) {
	for _, w := range gone {
		h.metrics.gone(w.Silent)
		text := fmt.Sprintf("Worker %s (ID: %d) has no heartbeat, marking as inactive", w.Name, w.ID)
		if w.Silent >= 0 {
			text = fmt.Sprintf("Worker %s (ID: %d) heartbeat is stale (%.0fs old), marking as inactive", w.Name, w.ID,
				w.Silent)
		}
		h.log(ctx, slog.LevelWarn, text, "worker_id", w.ID, "worker", w.Name, "role", w.Role, "status", w.Previous,
			"cordoned", w.Cordoned, "drained", w.Drained)
	}
}

func (h *Heartbeats) logReactivated(ctx context.Context, back []store.ReactivateWorkersRow) {
	for _, w := range back {
		h.metrics.back(w.Outage)
		text := "Worker %s (ID: %d) sends heartbeats again, marking as active"
		if w.Previous != lifecycle.WorkerInactive {
			text = "Worker %s (ID: %d) sends heartbeats again and has marked itself active"
		}
		args := []any{"worker_id", w.ID, "worker", w.Name, "role", w.Role}
		if w.Outage >= 0 {
			args = append(args, "outage_seconds", math.Round(w.Outage))
		}
		h.log(ctx, slog.LevelInfo, fmt.Sprintf(text, w.Name, w.ID), args...)
	}
}
