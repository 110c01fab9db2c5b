package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// mailbox stores messages in place of a broker.
type mailbox struct {
	mu       sync.Mutex
	messages []outbox.Message
}

// Published implements the relay of batches and of operators.
func (r *mailbox) Published(_ int64, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, messages...)
}

// take empties the box and returns the executions that were dispatched to workers, and the ones that were
// requested again to nudge their queues.
func (r *mailbox) take(t testing.TB) (dispatched, nudged []int64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		switch {
		case m.Type != message.TypeExecutionRequested:
		case strings.HasPrefix(m.RoutingKey, "execution.dispatch."):
			sent, err := message.Decode[message.Dispatch](m.Body)
			require.NoError(t, err)
			require.Equal(t, int32(1), sent.Payload.Attempt)
			dispatched = append(dispatched, sent.Payload.ExecutionID)
		default:
			sent, err := message.Decode[message.ExecutionRequested](m.Body)
			require.NoError(t, err)
			nudged = append(nudged, sent.Payload.ExecutionID)
		}
	}
	r.messages = nil
	return dispatched, nudged
}

// trial lets the helpers of tests fail one run of a property test, so that it can be reduced, and not the whole
// test.
type trial struct {
	testing.TB

	run *rapid.T
}

func (t trial) Helper()                           {}
func (t trial) Errorf(format string, args ...any) { t.run.Errorf(format, args...) }
func (t trial) Fatalf(format string, args ...any) { t.run.Fatalf(format, args...) }
func (t trial) FailNow()                          { t.run.FailNow() }

// machine drives the engine and the model with the same steps.
type machine struct {
	t         *rapid.T
	tb        trial
	store     *store.Store
	replicas  []*scheduler.Scheduler
	operator  *triage.Triage
	sent      *mailbox // the messages of batches
	nudges    *mailbox // the messages of operators
	model     *model
	ids       map[string]int64 // actions, and packs with a colon before
	policies  map[string]int64 // by action, by pack with a colon before, or ":" for the global one
	makes     map[string]func(limit int) int64
	late      []*execution   // requested; the message is not delivered yet
	held      map[int64]bool // dispatched once
	immediate bool           // the same step releases the slots of a deleted execution
	begun     time.Time
}

const (
	longestQueue = 4
	timeout      = 60 // seconds in a queue
)

var tables = strings.Join([]string{
	"pack", "action", "policy", "execution", "execution_admission_state", "execution_admission_entry",
	"admission_scope",
	"execution_holder", "execution_slot", "admission_blocked", "lost_holder", "queue_stats", "outbox", "worker",
	"worker_load", "operator_audit",
}, ", ")

func newMachine(t *testing.T, run *rapid.T, st *store.Store) *machine {
	t.Helper()
	m := &machine{
		t: run, tb: trial{TB: t, run: run}, store: st, sent: &mailbox{}, nudges: &mailbox{},
		model: newModel(longestQueue),
		ids:   map[string]int64{}, policies: map[string]int64{}, makes: map[string]func(int) int64{},
		held:  map[int64]bool{},
		begun: time.Now(),
	}
	testkit.Exec(m.tb, st, `TRUNCATE `+tables+` CASCADE`)
	for range 3 {
		m.replicas = append(m.replicas, scheduler.New(scheduler.Config{
			// no worker sends heartbeats here, and a busy machine needs minutes
			MaxQueued: longestQueue, HeartbeatStaleAfter: time.Hour,
		}, scheduler.Deps{Store: st, Relay: m.sent, Logger: testkit.Logger(t)}))
	}
	m.operator = triage.New(triage.Config{}, st, m.nudges)
	capacity := rapid.SampledFrom([]int{2, 4, 1000}).Draw(run, "capacity")
	testkit.Worker(m.tb, st, "w", func(w *testkit.WorkerRow) { w.Capabilities = testkit.DefaultCapabilities(capacity) })
	m.model.workers.inForce, m.model.workers.most = true, capacity+2 // two may be sent and not started

	m.action("alpha.plain", true, nil)
	m.action("alpha.grouped", true,
		func(r *rules, p *testkit.PolicyRow) { r.grouped, p.Parameters = true, []string{"tenant"} })
	m.action("beta.strict", true, func(r *rules, p *testkit.PolicyRow) { r.cancel, p.Method = true, "cancel" })
	m.action("beta.free", false, nil)
	m.wide(":alpha", "alpha.plain", testkit.OfPack(testkit.ActionRow{PackID: m.ids[":alpha"]}))
	m.wide(":", "alpha.plain", testkit.Global)
	m.immediate = m.model.global.inForce || m.model.packs["alpha"].inForce || capacity < 1000 ||
		rapid.Bool().Draw(run, "immediate")
	if !m.immediate {
		delete(m.policies, ":alpha") // no shared limit comes later either
		delete(m.policies, ":")
	}
	return m
}

// action makes an action and, if asked, its policy.
func (m *machine) action(ref string, limited bool, change func(*rules, *testkit.PolicyRow)) {
	row := testkit.Action(m.tb, m.store, ref)
	pack, _, _ := strings.Cut(ref, ".")
	m.ids[ref], m.ids[":"+pack] = row.ID, row.PackID
	r := &rules{pack: pack}
	m.model.actions[ref] = r
	if m.model.packs[pack] == nil {
		m.model.packs[pack] = newCounter()
	}
	if !limited {
		return
	}
	r.threshold = m.draw(1, 3, "limit of "+ref)
	r.front = rapid.Bool().Draw(m.t, "retries of "+ref+" go first")
	r.longest = rapid.SampledFrom([]int{0, 3, 20}).Draw(m.t, "longest queue of "+ref)
	m.makes[ref] = func(limit int) int64 {
		return testkit.Policy(m.tb, m.store, row, limit, func(p *testkit.PolicyRow) {
			if change != nil {
				change(r, p)
			}
			if r.front {
				p.RetryPlace = new("front")
			}
			if r.longest > 0 {
				p.MaxQueueLength = new(int32(r.longest))
			}
		}).ID
	}
	m.policies[ref] = m.makes[ref](r.threshold)
}

// wide makes a policy that queues share, or defers it.
func (m *machine) wide(name, action string, of func(*testkit.PolicyRow)) {
	c := m.counter(name)
	c.cancel = rapid.IntRange(0, 3).Draw(m.t, "method of "+name) == 0
	row := testkit.ActionRow{ID: m.ids[action], Ref: action, PackID: m.ids[":alpha"]}
	m.makes[name] = func(limit int) int64 {
		return testkit.Policy(m.tb, m.store, row, limit, of, func(p *testkit.PolicyRow) {
			if c.cancel {
				p.Method = "cancel"
			}
		}).ID
	}
	m.policies[name] = 0
	if rapid.Bool().Draw(m.t, "with policy "+name) {
		c.inForce, c.most = true, m.draw(2, 4, "limit of "+name)
		m.policies[name] = m.makes[name](c.most)
	}
}

func (m *machine) counter(name string) *counter {
	if name == ":" {
		return m.model.global
	}
	return m.model.packs[strings.TrimPrefix(name, ":")]
}

func (m *machine) draw(least, most int, label string) int {
	return rapid.IntRange(least, most).Draw(m.t, label)
}

// some draws up to three executions with a property.
func (m *machine) some(label string, is func(*execution) bool) []*execution {
	var all []*execution
	for _, id := range slices.Sorted(maps.Keys(m.model.all)) {
		if e := m.model.all[id]; is(e) {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		m.t.Skip("no execution is " + label)
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(3, len(all)),
		func(e *execution) int64 { return e.id }).Draw(m.t, label)
}

func idsOf(list []*execution) []int64 {
	ids := make([]int64, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}

// run has one replica run a batch, and others fill the queues that it leaves unfilled.
func (m *machine) run(steps ...scheduler.Step) {
	m.tb.Helper()
	for tries := 0; ; tries++ {
		replica := m.replicas[m.draw(0, len(m.replicas)-1, "replica")]
		result, err := replica.Run(testkit.Context(m.tb.TB), steps...)
		require.NoError(m.t, err)
		if len(result.Unfilled) == 0 {
			return
		}
		require.Less(m.t, tries, 20, "the queues %v are never filled", result.Unfilled)
		steps = []scheduler.Step{scheduler.FillStep{Queues: result.Unfilled}}
	}
}

// batch is the input of one replica's batch, in the order of the engine, in both worlds.
func (m *machine) batch(ended, asked []*execution) {
	m.run(scheduler.NewReleaseStep(idsOf(ended)), scheduler.FillStep{}, scheduler.NewRequestStep(idsOf(asked)))
	for _, e := range ended {
		m.model.report(e)
	}
	m.model.promote()
	for _, e := range asked {
		m.model.ask(e, func() bool { return testkit.StatusOf(m.tb, m.store, e.id) == "cancelled" })
	}
	m.model.promote()
}

// newcomers makes the rows of some requests.
func (m *machine) newcomers() []*execution {
	list := make([]*execution, m.draw(1, 4, "how many"))
	for i := range list {
		ref := rapid.SampledFrom([]string{
			"alpha.plain", "alpha.plain", "alpha.grouped", "alpha.grouped", "beta.strict",
			"beta.free",
		}).Draw(m.t, "action")
		tenant := rapid.SampledFrom([]string{"a", "b"}).Draw(m.t, "tenant")
		list[i] = m.newcomer(ref, tenant, m.draw(0, 2, "lane"), m.draw(0, 4, "retry") == 0)
	}
	return list
}

func (m *machine) newcomer(ref, tenant string, lane int, retry bool) *execution {
	e := &execution{at: place{action: ref}, status: "requested", lane: lane, retry: retry}
	if m.model.actions[ref].grouped {
		e.at.group = fmt.Sprintf(`{"tenant":%q}`, tenant)
	}
	action := testkit.ActionRow{ID: m.ids[ref], Ref: ref}
	e.id = testkit.Execution(m.tb, m.store, action, func(row *testkit.ExecutionRow) {
		row.Config, row.Priority = map[string]any{"tenant": tenant}, new(int16(1-e.lane))
		if e.retry {
			first := testkit.Execution(m.tb, m.store, action, func(row *testkit.ExecutionRow) { row.Status = "failed" })
			m.model.all[first.ID] = &execution{id: first.ID, at: e.at, status: "failed"}
			row.OriginalExecution, row.RetryCount = &first.ID, 1
		}
	}).ID
	m.model.all[e.id] = e
	return e
}

// again adds repeated messages.
func (m *machine) again(list []*execution) []*execution {
	if m.draw(0, 3, "again") > 0 {
		return list
	}
	return append(list, m.some("asked for again", func(*execution) bool { return true })...)
}

// Shared admission against a model of its rules: S1–S7, S17, S21, S23 and L3, with repeated and late messages,
// with cancels and deletions by other services, and with limits, pauses and policies that change meanwhile. Three
// replicas run the batches in turn.
func TestAdmissionFollowsItsRules(t *testing.T) {
	st := testkit.Store(t, func(c *store.Config) { c.HotPath = true })
	rapid.Check(t, func(run *rapid.T) {
		m := newMachine(t, run, st)
		run.Repeat(map[string]func(*rapid.T){
			"":                m.check,
			"request":         m.request,
			"requestMore":     m.request,
			"requestLate":     m.requestLate,
			"deliver":         m.deliver,
			"finish":          m.finish,
			"finishAndReport": m.finishAndReport,
			"report":          m.report,
			"rush":            m.rush,
			"cancel":          m.cancel,
			"erase":           m.erase,
			"giveBack":        m.giveBack,
			"expire":          m.expire,
			"override":        m.override,
			"rule":            m.rule,
		})
	})
}
