package engine_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/tracing"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// sentSpan is a span as a collector reads it.
type sentSpan struct {
	TraceID    string `json:"traceId"`
	SpanID     string `json:"spanId"`
	ParentID   string `json:"parentSpanId"`
	Flags      uint32 `json:"flags"`
	Name       string `json:"name"`
	Kind       int    `json:"kind"`
	Start      string `json:"startTimeUnixNano"`
	End        string `json:"endTimeUnixNano"`
	Attributes []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	} `json:"attributes"`
	Links []struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
		Flags   uint32 `json:"flags"`
	} `json:"links"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
}

func (s sentSpan) times(t *testing.T) (start, end int64) {
	t.Helper()
	start, err := strconv.ParseInt(s.Start, 10, 64)
	require.NoError(t, err)
	end, err = strconv.ParseInt(s.End, 10, 64)
	require.NoError(t, err)
	require.LessOrEqual(t, start, end, s.Name)
	return start, end
}

// collector takes spans as an OpenTelemetry collector does.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans map[string]sentSpan // by span id; guarded by mu
	twice []string            // sent again; guarded by mu
	away  bool                // answers 503; guarded by mu
}

func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string]sentSpan{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(w, r); err != nil {
			t.Errorf("the collector cannot read a request: %v", err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		return fmt.Errorf("%s as %s", r.URL.Path, r.Header.Get("Content-Type"))
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	var sent struct {
		ResourceSpans []struct {
			Resource   any `json:"resource"`
			ScopeSpans []struct {
				Scope any        `json:"scope"`
				Spans []sentSpan `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); err != nil {
		return err
	}
	for _, span := range sent.ResourceSpans[0].ScopeSpans[0].Spans {
		if earlier, ok := c.spans[span.SpanID]; ok {
			c.twice = append(c.twice, span.SpanID)
			if earlier.Name != span.Name || earlier.ParentID != span.ParentID || earlier.Start != span.Start {
				return fmt.Errorf("span %s changed from %+v to %+v", span.SpanID, earlier, span)
			}
		}
		c.spans[span.SpanID] = span
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = io.WriteString(w, "{}")
	return err
}

func (c *collector) leave(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

// trace returns the spans of a trace by id.
func (c *collector) trace(id string) map[string]sentSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]sentSpan{}
	for key, span := range c.spans {
		if span.TraceID == id {
			found[key] = span
		}
	}
	return found
}

// links lists the traces that spans of this name link to.
func (c *collector) links(name string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]bool{}
	for _, span := range c.spans {
		for _, link := range span.Links {
			if span.Name == name {
				found[link.TraceID+link.SpanID] = true
			}
		}
	}
	return found
}

// tree returns the paths of the names of a trace's spans, sorted. The trace must have one first span,
// and every other a parent that began no later.
func (c *collector) tree(t *testing.T, id string) []string {
	t.Helper()
	spans := c.trace(id)
	var paths []string
	firsts := 0
	for _, span := range spans {
		start, _ := span.times(t)
		path := span.Name
		for at := span; at.ParentID != ""; {
			above, ok := spans[at.ParentID]
			require.True(t, ok, "span %s has no parent in %v", at.Name, slices.Collect(maps.Values(spans)))
			begun, _ := above.times(t)
			require.LessOrEqual(t, begun, start, "%s begins before %s", path, above.Name)
			path = above.Name + " > " + path
			at = above
		}
		if span.ParentID == "" {
			firsts++
		}
		paths = append(paths, path)
	}
	require.Equal(t, 1, firsts, "first spans of %v", paths)
	slices.Sort(paths)
	return paths
}

// traceOf is the id of the trace that begins with a row.
func (b *bundle) traceOf(t *testing.T, kind tracing.Kind, row int64) string {
	t.Helper()
	seed, err := b.store.ReadTraceSeed(testkit.Context(t))
	require.NoError(t, err)
	return tracing.Seed(seed).Trace(kind, row).String()
}

// reported waits until no ended row waits for the collector.
func (b *bundle) reported(t *testing.T, timeout time.Duration) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM trace_pending`) == 0
	}, timeout, "the spans of all rows are sent")
}

// traced makes a rule with a workflow of two tasks, of which the second fails once, and the worker.
func (b *bundle) traced(t *testing.T) (saw func() map[int64]string) {
	t.Helper()
	const ref, text = "demo.flow", `
version: "1"
tasks:
  - {name: first, action: core.noop, next: [{when: "{{ succeeded() }}", do: [second]}]}
  - {name: second, action: demo.once, retry: {count: 1, delay: 0}}
`
	parsed, mistakes, _ := workflow.Parse(ref, []byte(text))
	require.Empty(t, mistakes)
	definition, err := parsed.JSON()
	require.NoError(t, err)
	pack := testkit.Pack(t, b.store, "demo")
	testkit.Action(t, b.store, "demo.once")
	action := testkit.Action(t, b.store, ref)
	testkit.Exec(t, b.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition) VALUES ($2::text, $3, 'demo', $2::text, '1.0.0', $4) RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, pack.ID, definition)
	testkit.Exec(t, b.store, `UPDATE action SET max_retries = 1 WHERE ref = 'core.fail'`)
	testkit.Exec(t, b.store, `insert into trigger (ref, label) values ('demo.door', 'x')`)
	for _, name := range []string{ref, "core.fail"} {
		testkit.Exec(t, b.store, `insert into rule (ref, pack, pack_ref, label, action, action_ref, trigger, trigger_ref, action_params, enabled)
			select 'demo.' || replace(a.ref, '.', '_'), $1, 'demo', 'x', a.id, a.ref, t.id, t.ref, '{}', true
			from action a, trigger t where a.ref = $2 and t.ref = 'demo.door'`, pack.ID, name)
	}
	var mu sync.Mutex
	parents := map[int64]string{}
	actions := builtin.Actions()
	actions["demo.once"] = func(_ context.Context, task worker.Task) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		parents[task.ExecutionID] = task.TraceParent
		if len(parents)%2 == 1 {
			return nil, fmt.Errorf("the first attempt fails")
		}
		return nil, nil
	}
	w, err := worker.New(worker.Config{
		Name: "w1", MaxConcurrent: 10, HeartbeatInterval: 500 * time.Millisecond,
		Actions: actions,
	}, worker.Deps{Store: b.store, Broker: b.connect(t, "w1"), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.Start(testkit.Context(t)))
	t.Cleanup(w.Stop)
	return func() map[int64]string {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(parents)
	}
}

// life lists the spans of an execution and its phases, below a path.
func life(path, action string, phases ...string) []string {
	path += " > execution " + action
	paths := []string{path}
	for _, phase := range phases {
		paths = append(paths, path+" > "+phase+" "+action)
	}
	return paths
}

// whole are the paths of the trace of an event of traced, without those of a process.
func whole() []string {
	const event = "event demo.door"
	flow := event + " > enforcement demo.demo_flow"
	failing := event + " > enforcement demo.core_fail"
	once := []string{"queue", "dispatch", "run", "complete"}
	again := []string{"delay", "queue", "dispatch", "run", "complete"}
	return slices.Sorted(slices.Values(slices.Concat(
		[]string{event, flow, failing},
		life(failing, "core.fail", once...), life(failing+" > execution core.fail", "core.fail", again...),
		life(flow, "demo.flow", "complete"),
		life(flow+" > execution demo.flow", "core.noop", once...),
		life(flow+" > execution demo.flow", "demo.once", once...),
		life(flow+" > execution demo.flow > execution demo.once", "demo.once", once...), // the retry
	)))
}

// lasting removes the spans of processes from paths.
func lasting(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return strings.Contains(path, " > publish ") })
}

// One trace has the whole life of an event: its rules, their executions with a retry, and a workflow
// with its tasks. Batches and messages belong to it too.
func TestATraceHasTheWholeLifeOfAnEvent(t *testing.T) {
	b := setup(t)
	c := collect(t)
	b.Collector = c.URL
	quick := func(cfg *config.Config) {
		cfg.Executor.Retry.BaseDelay, cfg.Executor.Retry.HonourActionMaxRetries = 100*time.Millisecond, "true"
	}
	b.engine(t, quick)
	b.engine(t, quick)
	saw := b.traced(t)
	event := b.emit(t, 1)[0]
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution e WHERE e.finished_status IS NOT NULL`) == 6
	}, 30*time.Second)
	b.settled(t, 20*time.Second)
	b.reported(t, 20*time.Second)

	id := b.traceOf(t, tracing.Event, event)
	require.Equal(t, whole(), lasting(c.tree(t, id)))
	spans := c.trace(id)
	for execution, parent := range saw() {
		at := tracing.Parse(parent)
		require.Equal(t, id, at.Trace.String())
		require.Contains(t, spans[at.Span.String()].Name, "run demo.once", "the run of execution %d", execution)
	}
	require.Len(t, saw(), 2)
	testkit.Eventually(t, func() bool { // the spans of processes take up to a second more
		published := 0
		for _, span := range c.trace(id) {
			if strings.HasPrefix(span.Name, "publish ") {
				published++
			}
		}
		links := c.links("batch")
		linked := 0
		for key, span := range spans {
			if strings.HasPrefix(span.Name, "execution ") && links[id+key] {
				linked++
			}
		}
		return published >= 1 && linked == 6 // a message of two executions has no span
	}, 20*time.Second, "messages and batches have spans")
	c.tree(t, id)
	for _, span := range spans {
		if strings.HasPrefix(span.Name, "run core.fail") {
			require.Equal(t, 2, span.Status.Code, "a failure is one")
			require.NotEmpty(t, span.Status.Message)
		}
	}
}

// A client's traceparent is continued, and decides whether the trace is sampled.
func TestARequestContinuesTheTraceOfItsClient(t *testing.T) {
	b := setup(t)
	c := collect(t)
	b.Collector = c.URL
	e := b.engine(t, func(cfg *config.Config) {
		cfg.Executor.HTTP.Listen = "127.0.0.1:0"
		cfg.Telemetry.SampleRatio = 0
	})
	packs := pagePacks{}
	packs.add("traced.show", "actions/", ".yaml", "ref: traced.show\nentry_point: show.sh\noutput_format: text\n")
	packs.add("traced.show", "actions/", ".sh", "printf %s \"$TRACEPARENT\"\n")
	b.packWorker(t, "w1", packs.write(t, b), func(*worker.Config) {})
	post := func(parent string) (execution int64) {
		request, err := http.NewRequestWithContext(testkit.Context(t), http.MethodPost,
			"http://"+e.Addr()+"/api/v1/executions", strings.NewReader(`{"action_ref":"traced.show"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Traceparent", parent)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { require.NoError(t, answer.Body.Close()) }()
		require.Equal(t, http.StatusCreated, answer.StatusCode)
		var made struct{ Data struct{ ID int64 } }
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&made))
		return made.Data.ID
	}
	const id, above = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	first := post("00-" + id + "-" + above + "-01")
	const quiet = "4bf92f3577b34da6a3ce929d0e0e4737"
	post("00-" + quiet + "-" + above + "-00")
	post("not a traceparent")
	b.settled(t, 20*time.Second)
	b.reported(t, 20*time.Second)
	var below []string
	testkit.Eventually(t, func() bool {
		below = nil
		for _, span := range c.trace(id) {
			if span.ParentID == above {
				below = append(below, span.Name)
			}
		}
		return len(below) >= 2
	}, 20*time.Second, "the request has its span")
	slices.Sort(below)
	require.Equal(t, []string{"POST /api/v1/executions", "execution traced.show"}, below)
	printed, _ := b.completed(t, first)["stdout"].(string)
	require.Equal(t, id, tracing.Parse(printed).Trace.String(), "the process knows its place in the trace")
	require.Equal(t, "run traced.show", c.trace(id)[tracing.Parse(printed).Span.String()].Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		require.True(t, span.TraceID == id || span.Name == "batch", "only the sampled trace is sent: %+v", span)
	}
}

// A collector that is away delays no execution, and gets the traces when it is back.
func TestACollectorThatIsAwayDelaysNothing(t *testing.T) {
	b := setup(t)
	c := collect(t)
	c.leave(true)
	b.Collector = c.URL
	b.engine(t)
	b.worker(t, "w1", 10)
	ids := b.request(t, "core.noop", 20, "")
	b.settled(t, 20*time.Second)
	require.Equal(t, 20, testkit.Count(t, b.store, `SELECT count(*) FROM trace_pending`))
	c.leave(false)
	b.reported(t, 60*time.Second)
	for _, id := range ids {
		require.Len(t, lasting(c.tree(t, b.traceOf(t, tracing.Execution, id))), 5)
	}
}

// Without tracing nothing is written for it.
func TestWithoutTracingNothingIsWrittenForIt(t *testing.T) {
	b := setup(t)
	b.engine(t)
	b.worker(t, "w1", 5)
	b.request(t, "core.noop", 3, "")
	b.settled(t, 20*time.Second)
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM trace_pending`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM trace_origin`))
}

// Replicas that are killed at any moment leave every trace whole.
func TestTracesAreWholeAlthoughReplicasAreKilled(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill replicas under traced events")
	b := setup(t)
	c := collect(t)
	b.Collector = c.URL
	saw := b.traced(t)
	dice := testkit.Dice(t)
	first, second := startReplica(t, b.servers), startReplica(t, b.servers)
	const events = 60
	var ids []int64
	for len(ids) < events {
		ids = append(ids, b.emit(t, 5)...)
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store, `SELECT count(*) FROM execution`) > dice.IntN(6*len(ids)+1)
		}, 60*time.Second)
		require.NoError(t, first.Process.Kill())
		_ = first.Wait()
		first, second = second, startReplica(t, b.servers)
	}
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution e WHERE e.finished_status IS NOT NULL`) >= 5*events &&
			b.live(t) == 0
	}, 180*time.Second)
	b.settled(t, 120*time.Second)
	b.reported(t, 120*time.Second)
	require.NotEmpty(t, saw())
	_ = second
	for _, id := range ids {
		paths := lasting(c.tree(t, b.traceOf(t, tracing.Event, id)))
		executions := 0
		for _, path := range paths {
			last := path[strings.LastIndex(path, " > ")+3:]
			if strings.HasPrefix(last, "execution ") {
				executions++
			}
		}
		require.Equal(t, testkit.Count(t, b.store, fmt.Sprintf(`SELECT count(*) FROM execution e
			LEFT JOIN execution o ON o.id = e.original_execution
			JOIN enforcement f ON f.id = coalesce(e.enforcement, o.enforcement) WHERE f.event = %d`, id)), executions)
	}
	t.Logf("%d spans were sent twice", len(c.twice))
}
