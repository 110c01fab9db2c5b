package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/api"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// slowClient takes an answer only when it may.
type slowClient struct {
	*httptest.ResponseRecorder

	begun, may chan struct{}
}

// Write blocks.
func (c slowClient) Write(text []byte) (int, error) {
	select {
	case c.begun <- struct{}{}:
	case <-c.may: // it is not the first part
	}
	<-c.may
	return c.ResponseRecorder.Write(text)
}

// While two large answers are written, a third one of any kind waits, and small ones do not.
func TestFewLargeAnswersAreWrittenAtOnce(t *testing.T) {
	st := testkit.Store(t)
	// The first of each kind is large, the second one is not.
	testkit.Exec(t, st, `create temp table document as select n, to_jsonb(case n when 1 then
		(select string_agg(md5(i::text), '') from generate_series(1, 5000) i) else 'small' end) as d
		from generate_series(1, 2) n;
		insert into execution (action_ref, status, result) select 'demo.large', 'completed', d from document order by n;
		insert into event (trigger_ref, payload) select 'demo.door', d from document order by n;
		insert into inquiry (execution, prompt, response) select n, '?', d from document order by n;
		insert into dead_letter (reason, queue, body) select 'rejected', 'q', d::text::bytea from document order by n;
		insert into operator_audit (actor, action, request) select 'ann', 'queue.pause', d from document order by n desc;
		drop table document`)
	handler := api.New("127.0.0.1:0", api.Deps{
		Logger: telemetry.Discard(), Gatherer: telemetry.NewRegistry(), Ready: readyNow, Published: publishedOver(st),
		View: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), nil, nil),
	}).Handler()
	get := func(ctx context.Context, w http.ResponseWriter, path string) {
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/api/v1/"+path, nil))
	}
	code := func(ctx context.Context, path string) int {
		w := httptest.NewRecorder()
		get(ctx, w, path)
		return w.Code
	}
	begun, may := make(chan struct{}), make(chan struct{})
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() { get(t.Context(), slowClient{httptest.NewRecorder(), begun, may}, "executions/1") })
	}
	for range 2 {
		<-begun
	}
	kinds := map[string]string{ // the paths of a large and a small answer
		"executions/1": "executions/2", "events/1": "events/2", "inquiries/1": "inquiries/2",
		"dead-letters/1": "dead-letters/2", "audit": "audit?cursor=2",
	}
	for large, small := range kinds {
		waits, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		require.Equal(t, http.StatusServiceUnavailable, code(waits, large), large)
		cancel()
		require.Equal(t, http.StatusOK, code(t.Context(), small), small)
	}
	close(may)
	clients.Wait()
	for large := range kinds {
		require.Equal(t, http.StatusOK, code(t.Context(), large), large)
	}
}
