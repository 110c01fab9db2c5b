package worker

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// membership is the worker's own row.
type membership struct {
	store       *store.Store
	logger      *slog.Logger
	metrics     *Metrics
	incarnation uuid.UUID
	process     processID
	name        string
	id          int64
	consumes    func() bool // whether the queue is consumed
	inHand      func() int
	vitals      *vitals

	mu        sync.Mutex
	leaving   bool          // guarded by mu
	stalled   bool          // the queue was not consumed at the last beat; guarded by mu
	draining  bool          // requested by an operator, as of the last beat; guarded by mu
	unable    string        // why it cannot start actions, empty if it can; guarded by mu
	turned    chan struct{} // closed and replaced when draining or unable changes; guarded by mu
	displaced chan struct{} // closed when another process takes the name
	once      sync.Once
}

// lostWith is the result of executions whose process crashed.
var lostWith = mustEncode(map[string]any{
	"succeeded": false, "error": "the worker's process ended while the execution was running",
})

// enrol writes the row, which is not active yet. It refuses with a TakenError.
func (m *membership) enrol(ctx context.Context, cfg Config, found []interpreter) error {
	announced := cfg.capabilities(found)
	announced["process"] = m.process
	capabilities, err := json.Marshal(announced)
	if err != nil {
		return fmt.Errorf("encode the capabilities of worker %s: %w", cfg.Name, err)
	}
	params := store.EnrolWorkerParams{
		Name: cfg.Name, WorkerType: store.WorkerTypeEnum(cfg.Type), Host: &cfg.Host,
		Capabilities: capabilities, Incarnation: m.incarnation,
	}
	if cfg.Port > 0 {
		port := int32(cfg.Port)
		params.Port = &port
	}
	row, err := m.takeName(ctx, cfg, params)
	if err != nil {
		return fmt.Errorf("register worker %s: %w", cfg.Name, err)
	}
	m.id = row.ID
	m.logger.InfoContext(ctx, "Worker registered", "worker_id", row.ID, "worker", cfg.Name, "cordoned", row.Cordoned)
	return nil
}

// forgottenWith is the result of executions that run only according to their rows.
var forgottenWith = mustEncode(map[string]any{
	"succeeded": false,
	"error":     "the worker does not run this execution; the database may have lost its end in a restore or failover",
})

// endLeftovers ends executions that an earlier process with this name left running.
func (m *membership) endLeftovers(ctx context.Context) ([]announcement, error) {
	return m.settle(ctx, lostWith, nil, nil)
}

// findForgotten ends executions that run at this worker according to their rows, but are not in
// hand: the database was restored, or failed over to a standby that lacked their ends. It reads the
// rows before the roster: an execution in hand enters the roster before its row runs and leaves it
// after its end is written, or after it was given back; then it may start again.
func (m *membership) findForgotten(ctx context.Context, l *life) error {
	held, err := m.store.ReadHeldRuns(ctx, m.id)
	if err != nil {
		return fmt.Errorf("read the executions that run at worker %d: %w", m.id, err)
	}
	held = slices.DeleteFunc(held, func(row store.ReadHeldRunsRow) bool { return l.roster.inHand(row.ID) })
	if len(held) == 0 {
		return nil
	}
	ids := make([]int64, len(held))
	for i, row := range held {
		ids[i] = row.ID
	}
	ended, err := m.settle(ctx, forgottenWith, ids, &held[0].At)
	if err != nil {
		return err
	}
	l.announcer.add(ctx, ended)
	return nil
}

// settle ends executions that no process runs: all of them if ids is nil, else the given ones unless they have started
// since they were read.
func (m *membership) settle(ctx context.Context, result []byte, ids []int64, readAt *time.Time) ([]announcement,
	error,
) {
	rows, err := m.store.SettleOrphans(ctx, store.SettleOrphansParams{
		Result: result, Worker: &m.id, Ids: ids, Incarnation: m.incarnation, ReadAt: readAt,
	})
	if err != nil {
		return nil, fmt.Errorf("end the executions that worker %d left running: %w", m.id, err)
	}
	var ended []announcement
	for _, row := range rows {
		m.logger.WarnContext(ctx, "Execution that no process runs ended", "execution_id", row.ID, "status",
			string(row.Status))
		ended = append(ended, announcement{
			execution: row.ID, action: row.Action, ref: row.ActionRef, status: row.Status,
			previous: "running", result: string(row.Result), at: at(row.FinishedAt),
		})
	}
	return ended, nil
}

// activate makes the worker available to placement; it already consumes.
func (m *membership) activate(ctx context.Context) error {
	n, err := m.store.ActivateWorker(ctx, m.id, m.incarnation)
	if err != nil {
		return fmt.Errorf("activate worker %d: %w", m.id, err)
	}
	if n == 0 {
		return fmt.Errorf("activate worker %d: another process has taken its name", m.id)
	}
	return nil
}

// beat writes one heartbeat. A worker that does not consume its queue, or cannot start actions, reports an error
// status: it is alive, but must receive nothing.
func (m *membership) beat(ctx context.Context) error {
	consuming := m.consumes()
	m.metrics.inHand.Set(float64(m.inHand()))
	m.metrics.consumes.Set(map[bool]float64{true: 1}[consuming])
	draining, err := m.store.BeatWorker(ctx, m.status(ctx, consuming), m.id, m.incarnation)
	switch {
	case err == nil:
		m.setDraining(draining)
		m.reportHealth(ctx)
	case errors.Is(err, sql.ErrNoRows):
		m.displace(ctx)
	default:
		return fmt.Errorf("heartbeat of worker %d: %w", m.id, err)
	}
	return nil
}

// reportHealth writes the worker's health if it changed. Heartbeats do not depend on it.
func (m *membership) reportHealth(ctx context.Context) {
	report, err := m.vitals.due(ctx)
	if err == nil && report != nil {
		_, err = m.store.ReportHealth(ctx, report, m.id, m.incarnation)
	}
	if err != nil {
		m.vitals.unreported()
		m.logger.WarnContext(ctx, "Worker's health not written, retrying", "worker_id", m.id, "error", err)
	}
}

func (m *membership) setDraining(draining bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining == draining {
		return
	}
	m.draining = draining
	m.turn()
}

// setUnable takes the worker out of service, or back with an empty reason.
func (m *membership) setUnable(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unable = reason
	m.turn()
}

// turn needs mu.
func (m *membership) turn() {
	close(m.turned)
	m.turned = make(chan struct{})
}

// inability is why the worker cannot start actions, empty if it can.
func (m *membership) inability() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unable
}

// await returns nil when the worker rests, because it drains or is unable, or works again; it returns why if the
// worker ends first.
func (m *membership) await(ctx context.Context, resting bool) error {
	for {
		m.mu.Lock()
		is, turned := m.draining || m.unable != "", m.turned
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return ErrShutdown
		case <-m.displaced:
			return ErrTaken
		default:
		}
		if is == resting {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-m.displaced:
		case <-turned:
		}
	}
}

func (m *membership) status(ctx context.Context, consuming bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leaving { // a concurrent beat may have undone it
		return lifecycle.WorkerInactive
	}
	if m.stalled == consuming {
		m.stalled = !consuming
		m.logger.WarnContext(ctx, "Consumption of the dispatch queue changed", "worker_id", m.id, "consuming",
			consuming)
	}
	status := lifecycle.WorkerActive
	if !consuming || m.unable != "" {
		status = lifecycle.WorkerError
	}
	return status
}

// leave removes the worker from placement while its work continues, for good if draining is false.
// Later heartbeats repeat it.
func (m *membership) leave(ctx context.Context, draining bool) {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	if _, err := m.store.LeaveWorker(ctx, draining, m.id, m.incarnation); err != nil {
		m.logger.WarnContext(ctx, "Worker not marked inactive, its heartbeat becomes stale", "worker_id", m.id, "error",
			err)
	}
}
