package triage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// Names of the policies by which the time to live of worker queues is lowered:
// one for all queues, and before it one for each worker that has its own.
const (
	PolicyWorkerTTL        = "attune-worker-ttl"
	policyWorkerTTLPattern = `^worker\.[0-9]+\.executions$`
	policyTTLKey           = "message-ttl"
)

// AttuneWorkerTTL is the time to live that existing Attune workers declare,
// whatever is configured.
const AttuneWorkerTTL = 5 * time.Minute

// QueueTTLConfig is what the time to live of worker queues is judged by.
type QueueTTLConfig struct {
	Config

	// Configured is what workers and engines of this configuration declare.
	Configured time.Duration
	// NoDeadLetters says that no replica handles expired dispatches.
	NoDeadLetters bool
}

// QueueTTLs looks at, and changes, how long hand-overs wait in the queues of
// workers before they expire.
type QueueTTLs struct {
	cfg        QueueTTLConfig
	store      *store.Store
	broker     *broker.Broker
	management *broker.Management
	triage     *Triage
	// reached is told of each step of a recreation, and stops it there by an
	// error; for tests.
	reached func(step string) error
}

// NewQueueTTLs makes a QueueTTLs. The broker must have been started; the
// management API is needed, because arguments are not seen without it.
func NewQueueTTLs(cfg QueueTTLConfig, st *store.Store, b *broker.Broker, management *broker.Management) *QueueTTLs {
	if cfg.Configured <= 0 {
		cfg.Configured = broker.WorkerQueueTTLDefault
	}
	t := New(cfg.Config, st, nil)
	cfg.Config = t.cfg
	return &QueueTTLs{cfg: cfg, store: st, broker: b, management: management, triage: t, reached: func(string) error { return nil }}
}

// QueueTTL is the time to live of one worker's queue. Times are in
// milliseconds; nil means that there is none.
type QueueTTL struct {
	Worker int64  `json:"worker"`
	Name   string `json:"name"` // of the worker; empty: its row was deleted
	Queue  string `json:"queue"`
	Exists bool   `json:"exists"`
	Type   string `json:"type,omitempty"`
	// Argument is what the queue was declared with, Policy what policies say on
	// top, Effective the least of both.
	Argument       *int64 `json:"argument_ms"`
	Policy         *int64 `json:"policy_ms"`
	PolicyName     string `json:"policy,omitempty"`
	Operator       *int64 `json:"operator_policy_ms"`
	OperatorPolicy string `json:"operator_policy,omitempty"`
	Effective      *int64 `json:"effective_ms"`
	Configured     int64  `json:"configured_ms"`
	Consumers      int    `json:"consumers"`
	Ready          int    `json:"ready"`
	// Present says that the worker's process is there, by its heartbeats.
	Present bool `json:"present"`
	// Interrupted says that a recreation was begun and has not ended.
	Interrupted bool `json:"interrupted"`
	// Advice is what to do to reach the configured time; empty: nothing.
	Advice string `json:"advice,omitempty"`

	arguments map[string]any
	unacked   int
}

// QueueTTLReport is the time to live of all worker queues.
type QueueTTLReport struct {
	Configured int64      `json:"configured_ms"`
	Queues     []QueueTTL `json:"queues"`
	Notes      []string   `json:"notes,omitempty"`

	policies, operators []broker.Policy
}

var (
	workerQueue = regexp.MustCompile(`^worker\.([0-9]+)\.executions$`)
	// leftBehind are the queue and the exchanges of a recreation.
	leftBehind = regexp.MustCompile(`^worker\.([0-9]+)\.executions\.(?:holding|out|back)$`)
)

// Report reads the time to live of all queues of workers.
func (q *QueueTTLs) Report(ctx context.Context) (*QueueTTLReport, error) { return q.report(ctx, 0) }

// report reads all queues, or that of one worker.
func (q *QueueTTLs) report(ctx context.Context, only int64) (*QueueTTLReport, error) {
	workers, err := q.store.ListQueueWorkers(ctx, q.cfg.HeartbeatStaleAfter.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	report := &QueueTTLReport{Configured: q.cfg.Configured.Milliseconds(), Queues: []QueueTTL{}}
	if report.policies, err = q.management.Policies(ctx); denied(err) {
		report.Notes = append(report.Notes, "policies are not seen, and not changed, by this user of the broker: it needs the tag policymaker")
	} else if err != nil {
		return nil, err
	}
	if report.operators, err = q.management.OperatorPolicies(ctx); denied(err) {
		report.Notes = append(report.Notes, "operator policies are not seen by this user of the broker")
	} else if err != nil {
		return nil, err
	}
	queues, err := q.management.Queues(ctx)
	if err != nil {
		return nil, err
	}
	exchanges, err := q.management.Exchanges(ctx)
	if err != nil {
		return nil, err
	}
	rows := map[int64]*QueueTTL{}
	row := func(id int64) *QueueTTL {
		if rows[id] == nil {
			rows[id] = &QueueTTL{Worker: id, Queue: message.WorkerExecutionsQueue(id), Configured: report.Configured}
		}
		return rows[id]
	}
	for _, w := range workers {
		if w.Present {
			row(w.ID).Present = true
		}
	}
	for _, exchange := range exchanges {
		if id, ok := idIn(leftBehind, exchange.Name); ok {
			row(id).Interrupted = true
		}
	}
	for i := range queues {
		if id, ok := idIn(leftBehind, queues[i].Name); ok {
			row(id).Interrupted = true
		}
		if id, ok := idIn(workerQueue, queues[i].Name); ok {
			row(id).fill(&queues[i], report)
		}
	}
	for _, w := range workers {
		if rows[w.ID] != nil {
			rows[w.ID].Name = w.Name
		}
	}
	for _, one := range rows {
		if only != 0 && one.Worker != only {
			continue
		}
		if err := q.ask(ctx, one); err != nil {
			return nil, err
		}
		one.Advice = one.advise(q.cfg.Configured.Milliseconds())
		report.Queues = append(report.Queues, *one)
	}
	slices.SortFunc(report.Queues, func(a, b QueueTTL) int { return int(a.Worker - b.Worker) })
	if q.cfg.NoDeadLetters {
		report.Notes = append(report.Notes, "dead_letter.enabled is false: expired dispatches stay in attune.dlx.queue, and their executions wait for the scheduled timeout")
	}
	return report, nil
}

// denied tells whether the management API has no objection but to the user.
func denied(err error) bool {
	answer, ok := errors.AsType[*broker.ManagementError](err)
	return ok && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

func idIn(pattern *regexp.Regexp, name string) (int64, bool) {
	found := pattern.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	id, err := strconv.ParseInt(found[1], 10, 64)
	return id, err == nil
}

// fill takes over what the management API says exactly.
func (r *QueueTTL) fill(info *broker.QueueInfo, report *QueueTTLReport) {
	r.Exists, r.Type, r.arguments = true, info.Type, info.Arguments
	if info.Unacked != nil {
		r.unacked = *info.Unacked
	}
	r.Argument = number(info.Arguments["x-message-ttl"])
	r.PolicyName, r.Policy = ttlOf(report.policies, info.Policy)
	r.OperatorPolicy, r.Operator = ttlOf(report.operators, info.OperatorPolicy)
	for _, one := range []*int64{r.Argument, r.Policy, r.Operator} {
		if one != nil && (r.Effective == nil || *one < *r.Effective) {
			r.Effective = one
		}
	}
}

// ttlOf finds the policy and what it says about the time to live.
func ttlOf(policies []broker.Policy, name string) (string, *int64) {
	for _, p := range policies {
		if p.Name == name {
			return name, number(p.Definition[policyTTLKey])
		}
	}
	return name, nil
}

func number(value any) *int64 {
	var n int64
	switch v := value.(type) {
	case float64:
		n = int64(v)
	case int64:
		n = v
	case int:
		n = int64(v)
	default:
		return nil
	}
	return &n
}

// ask asks the broker itself for what the management API knows too late.
func (q *QueueTTLs) ask(ctx context.Context, r *QueueTTL) error {
	state, err := q.broker.QueueState(ctx, r.Queue)
	if err != nil {
		return err
	}
	r.Exists, r.Consumers, r.Ready = state.Exists, state.Consumers, state.Ready
	return nil
}

// advise says what to do to reach the configured time to live, which is what
// workers declare: the argument has to be that, whatever a policy makes of it.
func (r *QueueTTL) advise(configured int64) string {
	command := func(more string) string {
		return fmt.Sprintf("`attune-executor workers ttl %s --worker %d%s --yes`", span(configured), r.Worker, more)
	}
	switch {
	case r.Interrupted:
		return "its recreation was interrupted: " + command(" --recreate") + " ends it"
	case !r.Exists && r.Present:
		return "the queue does not exist: restart the worker, which declares it"
	case !r.Exists:
		return ""
	case r.Argument == nil || *r.Argument != configured:
		return "a worker that declares " + span(configured) + " is refused: stop it, then " + command(" --recreate")
	case r.Effective != nil && *r.Effective == configured:
		return ""
	case r.Operator != nil && *r.Operator < configured:
		return fmt.Sprintf("operator policy %q is lower: it belongs to those who run the broker", r.OperatorPolicy)
	case ours(r.PolicyName):
		return command("") + " takes the policy away"
	default:
		return fmt.Sprintf("policy %q is lower: change it, or leave it so", r.PolicyName)
	}
}

// ErrNoWorkerQueue says that there is no such worker, or no queue at all.
var ErrNoWorkerQueue = errors.New("there is no worker queue")

// pick returns the queues of a worker by id or name, or all that exist.
func (report *QueueTTLReport) pick(worker string) ([]QueueTTL, error) {
	var picked []QueueTTL
	for _, one := range report.Queues {
		named := worker != "" && (one.Name == worker || strconv.FormatInt(one.Worker, 10) == worker)
		if (one.Exists || one.Interrupted) && (worker == "" || named) {
			picked = append(picked, one)
		}
	}
	if len(picked) > 1 && worker != "" { // a name that is a number comes before the id
		picked = slices.DeleteFunc(picked, func(one QueueTTL) bool { return one.Name != worker })
	}
	switch {
	case len(picked) == 0 && worker != "":
		return nil, fmt.Errorf("%w of worker %s: `attune-executor workers ttl` shows those that are there", ErrNoWorkerQueue, worker)
	case len(picked) == 0:
		return nil, fmt.Errorf("%w: a worker declares its own when it starts", ErrNoWorkerQueue)
	}
	return picked, nil
}

// Only leaves the queue of one worker, by id or name, in the report; an empty
// name leaves all.
func (report *QueueTTLReport) Only(worker string) error {
	if worker == "" {
		return nil
	}
	picked, err := report.pick(worker)
	if err != nil {
		return err
	}
	report.Queues = picked
	return nil
}
