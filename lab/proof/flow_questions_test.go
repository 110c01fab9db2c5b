package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// flowAsked is a workflow with one task after an answered inquiry and another after an expired one.
const flowAsked = "flow.asked"

const flowAskedText = `
version: "1"
vars: {heard: nothing, took: nothing}
tasks:
  - name: ask
    action: core.ask
    timeout: 2
    input: {prompt: "Who?", response_schema: {who: {type: string, required: true}}}
    next:
      - {when: "{{ succeeded() }}", publish: [{heard: "{{ result().response.who }}"}], do: [answered]}
      - {when: "{{ timed_out() }}", publish: [{heard: nobody}], do: [late]}
  - {name: answered, action: flow.step, input: {run: "{{ parameters.run }}", task: answered}, next: [{publish: [{took: answered}]}]}
  - {name: late, action: flow.step, input: {run: "{{ parameters.run }}", task: late}, next: [{publish: [{took: late}]}]}
output_map: {heard: "{{ heard }}", took: "{{ took }}"}
`

// answerRace is two users that answer the same inquiries at the moment at which these expire.
type answerRace struct {
	f    *flow
	mu   sync.Mutex
	seen map[int64]bool
	took map[int64][]string // accepted answers
	on   sync.WaitGroup
}

func (f *flow) answerRace() *answerRace {
	q := &answerRace{f: f, seen: map[int64]bool{}, took: map[int64][]string{}}
	f.t.Cleanup(q.on.Wait)
	return q
}

// moment returns the time of the next answer: every fourth at once, every fourth certainly too late, and the
// others close to the expiry. So both outcomes occur however rarely this process runs.
func (q *answerRace) moment(due time.Time) time.Time {
	switch len(q.seen) % 4 {
	case 0:
		return time.Now()
	case 1:
		return due.Add(time.Second)
	default:
		return due.Add(rand.N(400*time.Millisecond) - 250*time.Millisecond)
	}
}

// answered reports whether an answer was accepted. On a machine that pauses for two seconds even an immediate
// answer may be too late.
func (q *answerRace) answered() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.took) > 0
}

// answerNew has two people answer each new inquiry.
func (q *answerRace) answerNew() {
	q.f.t.Helper()
	rows, err := q.f.store.Pool().Query(testkit.Context(q.f.t),
		`SELECT id, timeout_at FROM inquiry WHERE status = 'pending'`)
	require.NoError(q.f.t, err)
	type open struct {
		ID  int64
		Due time.Time
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[open])
	require.NoError(q.f.t, err)
	for _, one := range list {
		if q.seen[one.ID] {
			continue
		}
		q.seen[one.ID] = true
		at := q.moment(one.Due)
		for _, who := range []string{"anna", "bert"} {
			q.on.Go(func() {
				time.Sleep(time.Until(at))
				q.answer(one.ID, who)
			})
		}
	}
}

func (q *answerRace) answer(id int64, who string) {
	response := json.RawMessage(fmt.Sprintf(`{"who": %q}`, who))
	_, err := q.f.operator.Answer(testkit.Context(q.f.t), triage.AnswerRequest{Inquiry: id, Response: response})
	var refused *triage.AnswerRefusedError
	switch {
	case err == nil:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.took[id] = append(q.took[id], who)
	case !errors.As(err, &refused):
		q.f.t.Errorf("answer inquiry %d: %v", id, err)
	}
}

// S16: two people answer inquiries at the moment of expiry, which two replicas watch. One replica dies while it
// publishes the outcome, at one point after another. Each inquiry gets one outcome, answered by one person or
// expired, and the workflow takes that way only.
func TestS16AnAnswerAndTheEndOfItsTimeExcludeEachOther(t *testing.T) {
	f := newFlow(t)
	f.define(flowAsked, flowAskedText)
	f.worker("w1")
	next, q, asked := f.serve(), f.answerRace(), 0
	ask := func() {
		q.answerNew()
		asked++
		_, err := f.submitter.RequestMany(testkit.Context(t),
			[]submit.Request{{ActionRef: flowAsked, Params: fmt.Appendf(nil, `{"run":%d}`, asked)}})
		require.NoError(t, err)
	}
	points := crashpoint.Inquiries()
	if testkit.Slow() {
		points = append(points, "batch:committed", "advancement:committed", "outbox:before-publish",
			"outbox:after-publish")
	}
	for _, point := range points {
		victim := f.serve(dieAt(point, 1+rand.IntN(2)))
		testkit.Eventually(t, func() bool { ask(); return victim.killed() }, time.Minute, "a replica dies at %s: %s",
			point, lazily(f.open))
	}
	testkit.Eventually(t, func() bool {
		if asked < 24 || !q.answered() {
			ask()
			return false
		}
		q.answerNew()
		return f.count(`SELECT count(*) FROM execution e WHERE action_ref = $1 AND e.finished_status IS NOT NULL`,
			flowAsked) > 0
	}, time.Minute, "a question is answered and a workflow ends: %s", lazily(f.open))
	f.stage.age()
	testkit.Eventually(t, func() bool {
		q.answerNew()
		return f.count(`SELECT count(*) FROM execution e WHERE e.finished_status IS NULL`) == 0
	}, time.Minute, "S12: every workflow ends: %s", lazily(f.open))
	q.on.Wait()
	f.stage.over()
	f.requireOneOf(q, asked)
	require.Zero(t, next.stop(t))
}

// requireOneOf checks that each workflow took the way of its inquiry's outcome.
func (f *flow) requireOneOf(q *answerRace, asked int) {
	f.t.Helper()
	rows, err := f.store.Pool().Query(testkit.Context(f.t), `
		SELECT i.id, i.status::text, coalesce(i.response ->> 'who', 'nobody'), e.status::text, w.result ->> 'heard', w.result ->> 'took', w.status::text,
			(SELECT count(*) FROM execution s WHERE s.parent = w.id AND s.action_ref = $1)
		FROM inquiry i JOIN execution e ON e.id = i.execution JOIN execution w ON w.id = e.parent`, flowStep)
	require.NoError(f.t, err)
	type way struct {
		ID                                        int64
		Status, Who, Child, Heard, Took, Workflow string
		Steps                                     int
	}
	ways, err := pgx.CollectRows(rows, pgx.RowToStructByPos[way])
	require.NoError(f.t, err)
	require.Len(f.t, ways, asked, "one question for each workflow")
	sums := map[string]int{}
	for _, w := range ways {
		sums[w.Status]++
		want := way{w.ID, "timeout", "nobody", "timeout", "nobody", "late", "completed", 1}
		if took := q.took[w.ID]; len(took) > 0 {
			require.Len(f.t, took, 1, "inquiry %d is answered once", w.ID)
			want = way{w.ID, "responded", took[0], "completed", took[0], "answered", "completed", 1}
		}
		require.Equal(f.t, want, w)
	}
	require.Positive(f.t, sums["timeout"], "the ones with late answers")
	require.Positive(f.t, sums["responded"], "the one that the questions were asked for until it was answered")
	f.t.Logf("what became of the questions: %v", sums)
}
