package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/sample"
	"github.com/attune-go/attune/lab/installation/worker"
	"github.com/attune-go/attune/lab/query"
	"github.com/attune-go/attune/migrations"
)

// CopyConfig configures the rehearsal with a copy of an installation. The servers are those of Config, the
// original is only read.
type CopyConfig struct {
	Config

	From   string // the URL of the original
	Newest int    // see sample.Config
}

// CopyReport is the result of a rehearsal with a copy.
type CopyReport struct {
	Copied sample.Report `json:"copied"`
	// Differences and RunFirst are those of migrations.Plan.
	Differences []string               `json:"differences,omitempty"`
	RunFirst    []string               `json:"run_first,omitempty"`
	WorkQueues  []migrations.WorkQueue `json:"work_queues,omitempty"`

	AdoptedSeconds    float64 `json:"adopted_seconds"`
	HandedBackSeconds float64 `json:"handed_back_seconds"`
	Locks             []Lock  `json:"locks,omitempty"`
	LocksBack         []Lock  `json:"locks_handing_back,omitempty"`

	EngineStarted bool        `json:"engine_started"`
	Requests      []Requested `json:"requests"` // one for each action, of new executions
	// Before and After count the copied executions that had not ended, by status.
	Before map[string]int64 `json:"live_before"`
	After  map[string]int64 `json:"live_after"`
	// Violations are broken invariants of the tables while the engine served.
	Violations []string `json:"violations,omitempty"`
	// Changed are the differences between the catalogue before the adoption and after the hand-back.
	Changed    []string `json:"catalogue_changed,omitempty"`
	HandedBack bool     `json:"handed_back"`
	OK         bool     `json:"ok"`
}

// Requested is a new execution of an action, run by a stand-in for the workers.
type Requested struct {
	Action string `json:"action"`
	ID     int64  `json:"execution"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // why it did not complete
}

// Completed counts the completed requests.
func (r CopyReport) Completed() (n int) {
	for _, one := range r.Requests {
		if one.Status == "completed" {
			n++
		}
	}
	return n
}

// mostActions bounds the actions with a new execution, and mostWorkers the stand-ins.
const (
	mostActions = 20
	mostWorkers = 10

	// copyTimeout is longer than the time after which a worker counts as lost.
	copyTimeout = 3 * time.Minute
)

// copied is one rehearsal with a copy.
type copied struct {
	rehearsal

	copy    CopyConfig
	result  CopyReport
	workers []*worker.Worker
	live    []int64  // the copied executions that had not ended
	tables  []string // the catalogue before the adoption
}

// RunCopy rehearses the adoption with a copy of an installation. Its error says what stopped it; the report has
// what was found before.
func RunCopy(ctx context.Context, cfg CopyConfig) (CopyReport, error) {
	r := &copied{copy: cfg}
	r.cfg = cfg.Config
	r.cfg.Timeout = cmp.Or(cfg.Timeout, copyTimeout)
	defer r.closeCopy()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"copy the schema and a sample of the rows; the original is only read", r.take},
		{"check and adopt the copy: migrate check, migrate up", r.adoptCopy},
		{"serve, with stand-ins for the workers", r.serveCopy},
		{"request an execution of each action", r.requestAll},
		{"hand the copy back: migrate down", r.giveBack},
		{"compare the catalogue", r.compare},
	} {
		r.say("• " + step.what)
		if err := step.do(ctx); err != nil {
			return r.result, err
		}
	}
	r.result.OK = r.result.Completed() == len(r.result.Requests) && len(r.result.Violations) == 0 &&
		len(r.result.Changed) == 0
	return r.result, nil
}

// say prints a line of progress, which may be lost.
func (r *copied) say(line string) { _, _ = fmt.Fprintln(r.cfg.Out, line) }

func (r *copied) closeCopy() {
	for _, w := range r.workers {
		w.Kill()
	}
	r.close()
}

func (r *copied) take(ctx context.Context) (err error) {
	r.result.Copied, err = sample.Copy(ctx, sample.Config{
		From: r.copy.From, To: r.cfg.DatabaseURL, Schema: r.cfg.Schema,
		Newest: cmp.Or(r.copy.Newest, sample.NewestDefault), Live: sample.LiveDefault,
		Progress: func(line string) { r.say("  " + line) },
	})
	if err != nil {
		return err
	}
	if r.pool, err = installation.Open(ctx, r.cfg.DatabaseURL, r.cfg.Schema, "rehearsal"); err != nil {
		return err
	}
	if r.live, err = r.ids(ctx, `SELECT id FROM execution
		WHERE status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling')`); err != nil {
		return err
	}
	if r.result.Before, err = r.statuses(ctx); err != nil {
		return err
	}
	r.tables, err = r.catalogue(ctx)
	return err
}

// statuses counts the executions that had not ended when they were copied.
func (r *copied) statuses(ctx context.Context) (counts map[string]int64, err error) {
	err = r.pool.QueryRow(ctx, `SELECT coalesce(jsonb_object_agg(status, n), '{}') FROM
		(SELECT status, count(*) AS n FROM execution WHERE id = ANY ($1) GROUP BY 1) c`, r.live).Scan(&counts)
	if err != nil {
		return nil, fmt.Errorf("count executions: %w", err)
	}
	return counts, nil
}

// DifferentError reports an installation that cannot be adopted as it is.
type DifferentError struct{ migrations.Lack }

// Error says what to do; the report lists the differences.
func (e *DifferentError) Error() string {
	return fmt.Sprintf("the installation cannot be adopted: %d differences; %s", len(e.Differences), e.Advice())
}

func (r *copied) adoptCopy(ctx context.Context) error {
	plan, err := migrations.Check(ctx, r.options())
	if err != nil {
		return err
	}
	r.result.Differences, r.result.RunFirst, r.result.WorkQueues = plan.Differences, plan.Remedies, plan.WorkQueues
	if len(plan.Differences) > 0 {
		return &DifferentError{Lack: plan.Lack}
	}
	stop := watchLocks(ctx, r.pool)
	begun := time.Now()
	_, err = migrations.Up(ctx, r.options())
	r.result.AdoptedSeconds = time.Since(begun).Seconds()
	locks, failed := stop()
	r.result.Locks = locks
	return errors.Join(err, failed)
}

// serveCopy starts stand-ins with the names and capabilities of the live workers of the installation, and the
// engine. A worker is live if its heartbeat is not much older than the newest one: the original may be a backup.
func (r *copied) serveCopy(ctx context.Context) (err error) {
	configs, err := query.Rows(ctx, r.pool, "read the workers", `SELECT name, CASE jsonb_typeof(capabilities) WHEN 'object' THEN capabilities END FROM worker
		WHERE worker_role = 'action' AND status = 'active'
		  AND last_heartbeat > (SELECT max(last_heartbeat) FROM worker WHERE status = 'active') - interval '5 minutes'
		ORDER BY last_heartbeat DESC NULLS LAST LIMIT $1`, []any{mostWorkers},
		func(w *worker.Config) []any { return []any{&w.Name, &w.Capabilities} })
	if err != nil {
		return err
	}
	if len(configs) == 0 {
		configs = append(configs, worker.Config{Name: "rehearsal"})
	}
	for _, cfg := range configs {
		cfg.AMQPURL, cfg.DatabaseURL, cfg.Schema = r.cfg.AMQPURL, r.cfg.DatabaseURL, r.cfg.Schema
		cfg.Logger = r.cfg.Logger
		cfg.Behave = func(context.Context, worker.Job) worker.Answer {
			return worker.Answer{Result: map[string]any{"succeeded": true, "exit_code": 0, "data": map[string]any{}}}
		}
		w, err := worker.Start(cfg)
		if err != nil {
			return err
		}
		r.workers = append(r.workers, w)
	}
	r.say(fmt.Sprintf("  %d stand-ins run what is dispatched to them, and succeed at once", len(r.workers)))
	if err := r.dispatchAll(ctx); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	r.result.EngineStarted = true
	return nil
}

// dispatchAll publishes the dispatches of the copied executions that workers have received. A broker delivers them
// again to a worker that starts anew.
func (r *copied) dispatchAll(ctx context.Context) (err error) {
	if err := r.connect(); err != nil {
		return err
	}
	for _, w := range r.workers {
		ids, err := r.ids(ctx, `SELECT e.id FROM execution e LEFT JOIN action a ON a.id = e.action
			WHERE e.id = ANY ($1) AND e.worker = $2 AND e.status IN ('scheduled', 'running', 'canceling')
			  AND a.workflow_def IS NULL`, r.live, w.ID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := r.dispatch(ctx, id, w.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestAll requests an execution of each action that ran last, as the API does, with the parameters of its
// newest execution. It leaves out workflows, and the action that waits for an answer.
func (r *copied) requestAll(ctx context.Context) (err error) {
	actions, err := r.ids(ctx, `SELECT id FROM (SELECT a.id FROM action a LEFT JOIN execution e ON e.action = a.id
		WHERE a.workflow_def IS NULL AND a.ref <> 'core.ask' GROUP BY a.id ORDER BY max(e.id) DESC NULLS LAST, a.id LIMIT $1) used`, mostActions)
	if err != nil {
		return err
	}
	for _, action := range actions {
		one := Requested{}
		err := r.pool.QueryRow(ctx, `INSERT INTO execution (action, action_ref, config) SELECT a.id, a.ref,
				coalesce((SELECT e.config FROM execution e WHERE e.action = a.id ORDER BY e.id DESC LIMIT 1), '{}') FROM action a
			WHERE a.id = $1 RETURNING id, action_ref`, action).Scan(&one.ID, &one.Action)
		if err != nil {
			return fmt.Errorf("request an execution of action %d: %w", action, err)
		}
		if err := r.request(ctx, one.ID); err != nil {
			return err
		}
		r.result.Requests = append(r.result.Requests, one)
	}
	return r.awaitRequests(ctx)
}

// awaitRequests waits until the requests have ended, and reads how.
func (r *copied) awaitRequests(ctx context.Context) error {
	var ids []int64
	for _, one := range r.result.Requests {
		ids = append(ids, one.ID)
	}
	err := r.await(ctx, "the new executions end", `SELECT NOT EXISTS (SELECT FROM execution WHERE id = ANY ($1)
		AND status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling'))`, ids)
	if err != nil && !errors.Is(err, errTimeout) {
		return err
	}
	for i := range r.result.Requests {
		one := &r.result.Requests[i]
		err := r.pool.QueryRow(ctx, `SELECT status::text, coalesce(result ->> 'error', '') FROM execution WHERE id = $1`,
			one.ID).Scan(&one.Status, &one.Reason)
		if err != nil {
			return fmt.Errorf("read execution %d: %w", one.ID, err)
		}
	}
	r.say(fmt.Sprintf("  %d of %d completed", r.result.Completed(), len(r.result.Requests)))
	if err := r.awaitConsistency(ctx); err != nil {
		return err
	}
	r.result.After, err = r.statuses(ctx)
	return err
}

// awaitConsistency waits until no invariant is broken. Work at lost workers breaks some until their heartbeats are
// stale.
func (r *copied) awaitConsistency(ctx context.Context) error {
	for begun := time.Now(); ; {
		violations, err := doctor.Invariants(ctx, r.pool)
		if err != nil || len(violations) == 0 {
			return err
		}
		if time.Since(begun) > r.cfg.Timeout {
			for _, v := range violations {
				r.result.Violations = append(r.result.Violations, v.String())
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (r *copied) giveBack(ctx context.Context) error {
	replica := r.replica
	r.replica = nil
	if err := replica.Stop(ctx); err != nil {
		return err
	}
	stop := watchLocks(ctx, r.pool)
	err := r.handBack(ctx)
	locks, failed := stop()
	r.result.LocksBack, r.result.HandedBackSeconds = locks, r.report.HandedBack.Seconds()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	r.result.HandedBack = true
	return nil
}

func (r *copied) compare(ctx context.Context) error {
	after, err := r.catalogue(ctx)
	if err != nil {
		return err
	}
	r.result.Changed = differences(r.tables, after)
	slices.Sort(r.result.Changed)
	if len(r.result.Changed) > 0 {
		r.say("  differs: " + strings.Join(r.result.Changed, "; "))
	}
	return nil
}
