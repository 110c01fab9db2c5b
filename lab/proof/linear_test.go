package proof

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// twice publishes one message in five a second time.
type twice struct{ *broker.Publisher }

// Publish implements outbox.Publisher.
func (p twice) Publish(ctx context.Context, messages []broker.Message) []broker.Outcome {
	outcomes := p.Publisher.Publish(ctx, messages)
	var again []broker.Message
	for _, m := range messages {
		if rand.IntN(5) == 0 {
			again = append(again, m)
		}
	}
	p.Publisher.Publish(ctx, again)
	return outcomes
}

// chaosRun is three replicas under load that are killed and started again.
type chaosRun struct {
	servers

	t         *testing.T
	store     *store.Store
	submitter *submit.Submitter
	operator  *triage.Triage
	publisher twice
	recorder  *recorder
	world     *world
	actions   map[string]testkit.ActionRow
	policies  map[string]int64

	mu    sync.Mutex
	keys  map[int64][]string // of each execution
	acts  []act              // by operators and other services
	alive []*process
}

// The keys: a queue, two groups of a queue, and a limit of a pack over actions without limits of their own.
const (
	keyQueue  = "queue.one"
	keyGroups = "group.one"
	keyPack   = "wide"
)

func newChaosRun(t *testing.T) *chaosRun {
	t.Helper()
	database := testkit.Database(t)
	s := &chaosRun{
		servers: servers{Database: database, AMQP: testkit.VHost(t), Management: testkit.ManagementURL(t)},
		t:       t, store: testkit.OpenStore(t, database), world: newWorld(),
		actions: map[string]testkit.ActionRow{}, policies: map[string]int64{}, keys: map[int64][]string{},
	}
	wire := broker.New(broker.Config{URL: s.AMQP, ManagementURL: s.Management, ConnectionName: "requests"},
		testkit.Logger(t), nil)
	require.NoError(t, wire.Start(testkit.Context(t)))
	t.Cleanup(wire.Stop)
	require.NoError(t, wire.DeclareExecutor(testkit.Context(t)))
	s.publisher = twice{wire.Publisher()}
	relay := outbox.New(outbox.Config{}, s.store, s.publisher, testkit.Logger(t), nil)
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	s.submitter, s.operator = submit.New(s.store, relay), triage.New(triage.Config{}, s.store, relay)

	for _, ref := range []string{keyQueue, keyGroups, "wide.a", "wide.b", "wide.c"} {
		s.actions[ref] = testkit.Action(t, s.store, ref)
	}
	s.limit(keyQueue, 2)
	s.limit(keyGroups, 1, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	s.policies[keyPack] = testkit.Policy(t, s.store, s.actions["wide.a"], 2, testkit.OfPack(s.actions["wide.a"])).ID
	s.record(keyPack, act{Kind: "limit", Limit: 2}, func() {})
	s.recorder = newRecorder(t, s.store)
	for range 2 {
		s.worker()
	}
	return s
}

func (s *chaosRun) limit(ref string, limit int, options ...func(*testkit.PolicyRow)) {
	s.policies[ref] = testkit.Policy(s.t, s.store, s.actions[ref], limit, options...).ID
	for _, key := range s.queues(ref) {
		s.record(key, act{Kind: "limit", Limit: limit}, func() {})
	}
}

// queues are the keys of an action's queues.
func (s *chaosRun) queues(ref string) []string {
	if ref == keyGroups {
		return []string{keyGroups + " a", keyGroups + " b"}
	}
	return []string{ref}
}

// record records an operation of this test with its bounds.
func (s *chaosRun) record(key string, a act, do func()) {
	a.Key, a.From = key, time.Now()
	do()
	a.Until = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, a)
}

// worker starts a slow worker that reports one end in five twice.
func (s *chaosRun) worker() {
	testkit.StartFakeWorker(s.t, testkit.FakeWorkerConfig{
		AMQPURL: s.AMQP, DatabaseURL: s.Database, Concurrency: 30,
		Behave: func(ctx context.Context, job testkit.Job) testkit.Answer {
			s.world.begins(job.ExecutionID, job.MessageID)
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(5+rand.IntN(20)) * time.Millisecond):
			}
			s.world.ends(job.ExecutionID)
			answer := testkit.Answer{Status: []string{"completed", "completed", "failed"}[rand.IntN(3)]}
			if rand.IntN(5) == 0 {
				answer.Times = 2
			}
			return answer
		},
	})
}

// request requests executions of a key until there are enough.
func (s *chaosRun) request(ctx context.Context, rng *rand.Rand, key string, total int) {
	for sent := 0; sent < total && ctx.Err() == nil; {
		batch := make([]submit.Request, min(1+rng.IntN(5), total-sent))
		keys := make([][]string, len(batch))
		for i := range batch {
			batch[i] = submit.Request{ActionRef: key, Priority: submit.Priority(0)}
			keys[i] = []string{key}
			switch key {
			case keyQueue:
				batch[i].Priority = submit.Priority(1 - rng.IntN(3))
			case keyGroups:
				tenant := []string{"a", "b"}[rng.IntN(2)]
				batch[i].Params = json.RawMessage(fmt.Sprintf(`{"tenant":%q}`, tenant))
				keys[i] = []string{keyGroups + " " + tenant}
			default:
				batch[i].ActionRef = []string{"wide.a", "wide.b", "wide.c"}[rng.IntN(3)]
			}
		}
		done, err := s.submitter.RequestMany(ctx, batch)
		if err != nil {
			s.t.Errorf("request: %v", err)
			return
		}
		s.mu.Lock()
		for i, r := range done {
			s.keys[r.ID] = keys[i]
		}
		s.mu.Unlock()
		sent += len(batch)
		pause(ctx, rng, 60)
	}
}

func pause(ctx context.Context, rng *rand.Rand, most int) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rng.IntN(most)) * time.Millisecond):
	}
}

// rule changes limits, pauses and resumes until the context ends, and leaves nothing paused.
func (s *chaosRun) rule(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		ref := []string{keyQueue, keyGroups, keyPack}[rng.IntN(3)]
		limit := 1 + rng.IntN(4)
		switch {
		case ref == keyPack:
			s.record(keyPack, act{Kind: "limit", Limit: limit}, func() {
				testkit.Exec(s.t, s.store, `UPDATE policy SET threshold = $1 WHERE id = $2`, limit, s.policies[keyPack])
			})
		case rng.IntN(2) == 0:
			s.override(ref, triage.Override{Act: triage.Limit, Limit: limit}, act{Kind: "limit", Limit: limit})
		default:
			s.override(ref, triage.Override{Act: triage.Pause}, act{Kind: "pause"})
			pause(ctx, rng, 300)
			s.override(ref, triage.Override{Act: triage.Resume}, act{Kind: "resume"})
		}
		pause(ctx, rng, 200)
	}
}

// override applies an override to all queues of an action.
func (s *chaosRun) override(ref string, order triage.Override, a act) {
	order.Action = ref
	a.From = time.Now()
	if _, err := s.operator.Override(testkit.Context(s.t), order); err != nil {
		s.t.Errorf("%s %s: %v", order.Act, ref, err)
	}
	a.Until = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.queues(ref) {
		a.Key = key
		s.acts = append(s.acts, a)
	}
}

// cancel has another service cancel some waiting executions. It reports some of the cancels; the others leave
// holes.
func (s *chaosRun) cancel(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, rng, 150)
		a := act{Kind: "cancel", From: time.Now()}
		err := s.store.Pool().QueryRow(testkit.Context(s.t), `UPDATE execution SET status = 'cancelled' WHERE id = (
			SELECT execution_id FROM execution_admission_entry ORDER BY random() LIMIT 1) AND status = 'requested' RETURNING id`).Scan(&a.ID)
		a.Until = time.Now()
		switch {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			s.t.Errorf("cancel: %v", err)
			return
		}
		s.mu.Lock()
		s.acts = append(s.acts, a)
		s.mu.Unlock()
		if rng.IntN(2) == 0 {
			s.report(testkit.Context(s.t), a.ID)
		}
	}
}

// report publishes the end of an execution.
func (s *chaosRun) report(ctx context.Context, id int64) {
	body, err := message.New(message.TypeExecutionCompleted, message.ExecutionCompleted{
		ExecutionID: id, ActionRef: "any", Status: "cancelled", CompletedAt: time.Now(),
	}, time.Now(), "test").Encode()
	if err != nil {
		s.t.Errorf("encode: %v", err)
		return
	}
	s.publisher.Publish(ctx, []broker.Message{{
		ID: uuid.NewString(), Exchange: message.ExchangeExecutions, RoutingKey: message.KeyExecutionCompleted,
		Type: message.TypeExecutionCompleted, Body: body,
	}})
}

// kill kills one replica at any point and starts another, several times.
func (s *chaosRun) kill(rng *rand.Rand, times int) {
	for range times {
		pause(testkit.Context(s.t), rng, 900)
		victim := rng.IntN(len(s.alive))
		s.alive[victim].kill()
		s.alive[victim] = s.start(s.t)
	}
}

// over waits until all executions have ended and all slots are released.
func (s *chaosRun) over() {
	testkit.Eventually(s.t, func() bool {
		return testkit.Count(s.t, s.store, `SELECT (SELECT count(*) FROM execution e WHERE e.finished_status IS NULL OR EXISTS (SELECT FROM execution_holder h WHERE h.execution = e.id))
			+ (SELECT count(*) FROM execution_admission_entry)`) == 0
	}, testkit.TestTimeout, "L2, L3: all executions end and release their slots")
	testkit.Invariants(s.t, s.store)
}

// history returns all events, as acts on keys.
func (s *chaosRun) history() []act {
	keys := func(id int64) []string { return s.keys[id] }
	acts := s.world.acts(s.t, s.recorder.changes, keys)
	for _, a := range s.acts {
		if a.Kind != "cancel" {
			acts = append(acts, a)
			continue
		}
		for _, key := range keys(a.ID) {
			a.Key = key
			acts = append(acts, a)
		}
	}
	return acts
}

// Three replicas are killed at any point and started again, one message in five arrives twice, limits change,
// operators pause queues, and other services cancel: each key's history is that of a queue with this number of
// permits (S1–S5, S7, S15, S21, S23), and everything ends (L2, L3).
func TestReplicasUnderChaosAreLinearizable(t *testing.T) {
	t.Parallel()
	seed, each, kills := uint64(time.Now().UnixNano()), 60, 3
	if testkit.Slow() {
		each, kills = 500, 30
	}
	if given, err := strconv.ParseUint(os.Getenv("ATTUNE_PROOF_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("seed %d; ATTUNE_PROOF_SEED repeats the draws, not the timing", seed)
	s := newChaosRun(t)
	for range 3 {
		s.alive = append(s.alive, s.start(t))
	}
	var load, rest sync.WaitGroup
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	source := uint64(0)
	begin := func(group *sync.WaitGroup, do func(*rand.Rand)) {
		source++
		rng := rand.New(rand.NewPCG(seed, source))
		group.Go(func() { do(rng) })
	}
	watch, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	var watching sync.WaitGroup
	watching.Go(func() { s.recorder.run(watch, t) })
	for _, key := range []string{keyQueue, keyGroups, keyPack} {
		for range 2 {
			begin(&load, func(rng *rand.Rand) { s.request(testkit.Context(t), rng, key, each/2) })
		}
	}
	begin(&load, func(rng *rand.Rand) { s.kill(rng, kills) })
	begin(&rest, func(rng *rand.Rand) { s.rule(ctx, rng) })
	begin(&rest, func(rng *rand.Rand) { s.cancel(ctx, rng) })
	load.Wait()
	cancel()
	rest.Wait()
	s.over()
	done()
	watching.Wait()
	requireExplained(t, s.history())
}
