package message_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/message"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 3, 1, 12, 30, 45, 123456000, time.UTC)

// samples holds one payload of every type, full and with everything optional
// absent.
func samples() map[string]struct {
	kind    string
	payload any
} {
	raw := json.RawMessage(`{"a":[1,"<b>",null]}`)
	type sample = struct {
		kind    string
		payload any
	}
	return map[string]sample{
		"event_created": {message.TypeEventCreated, message.EventCreated{
			EventID: 1, TriggerID: new(int64(2)),
			TriggerRef: "core.timer", SensorID: new(int64(3)), SensorRef: new("core.s"), Payload: raw, Config: raw,
		}},
		"event_created_bare": {message.TypeEventCreated, message.EventCreated{EventID: 1, TriggerRef: "core.timer"}},
		"enforcement_created": {message.TypeEnforcementCreated, message.EnforcementCreated{
			EnforcementID: 4,
			RuleID:        new(int64(5)), RuleRef: "p.r", EventID: new(int64(6)), TriggerRef: "p.t", Payload: raw,
		}},
		"execution_requested": {
			message.TypeExecutionRequested,
			message.ExecutionRequested{
				ExecutionID: 7, ActionID: new(int64(8)), ActionRef: "core.echo",
				ParentID: new(int64(9)), EnforcementID: new(int64(10)), Config: raw,
			},
		},
		"execution_bare": {
			message.TypeExecutionRequested,
			message.ExecutionRequested{ExecutionID: 7, ActionRef: "core.echo"},
		},
		"dispatch": {message.TypeExecutionRequested, message.Dispatch{
			ExecutionID: 7, WorkerID: 11,
			ActionRef: "core.echo", Config: raw, ScheduledAttemptUpdatedAt: at, Attempt: 1,
		}},
		"status_changed": {message.TypeExecutionStatusChanged, message.ExecutionStatusChanged{
			ExecutionID: 7,
			ActionRef:   "core.echo", PreviousStatus: "running", NewStatus: "canceling", ChangedAt: at,
		}},
		"execution_completed": {message.TypeExecutionCompleted, message.ExecutionCompleted{
			ExecutionID: 7, ActionID: 8,
			ActionRef: "core.echo", Status: "completed", Result: raw, CompletedAt: at,
		}},
		"cancel_requested": {
			message.TypeExecutionCancelRequested,
			message.ExecutionCancelRequested{ExecutionID: 7, WorkerID: 11},
		},
		"inquiry_created": {message.TypeInquiryCreated, message.InquiryCreated{
			InquiryID: 12, ExecutionID: 7,
			Prompt: "ok?", ResponseSchema: raw, AssignedTo: new(int64(1)), TimeoutAt: new(at),
		}},
		"inquiry_responded": {message.TypeInquiryResponded, message.InquiryResponded{
			InquiryID: 12, ExecutionID: 7,
			Response: raw, RespondedBy: new(int64(1)), RespondedAt: at,
		}},
		"notification_created": {message.TypeNotificationCreated, message.NotificationCreated{
			NotificationID: 13,
			Channel:        "c", EntityType: "execution", Entity: "7", Activity: "done", Content: raw,
		}},
		"rule_created": {
			message.TypeRuleCreated,
			message.RuleCreated{
				RuleID: 5, RuleRef: "p.r", TriggerID: new(int64(2)), TriggerRef: "p.t",
				ActionID: new(int64(8)), ActionRef: "core.echo", TriggerParams: raw, Enabled: true,
			},
		},
		"rule_enabled": {
			message.TypeRuleEnabled,
			message.RuleEnabled{RuleID: 5, RuleRef: "p.r", TriggerRef: "p.t", TriggerParams: raw},
		},
		"rule_disabled": {
			message.TypeRuleDisabled,
			message.RuleDisabled{RuleID: 5, RuleRef: "p.r", TriggerRef: "p.t"},
		},
		"pack_registered": {
			message.TypePackRegistered,
			message.PackRegistered{PackID: 14, PackRef: "p", Version: "1.0.0", RuntimeNames: []string{"python"}},
		},
		"batch_requested": {
			message.TypeExecutionBatchRequested,
			message.Batch{Executions: []json.RawMessage{
				[]byte(`{"execution_id":7,"worker_id":11}`),
				[]byte(`{"execution_id":8,"worker_id":11}`),
			}},
		},
		"batch_completed": {
			message.TypeExecutionBatchCompleted,
			message.Batch{Executions: []json.RawMessage{[]byte(`{"execution_id":7}`), []byte(`{"execution_id":8}`)}},
		},
		"pack_deleted": {message.TypePackDeleted, message.PackDeleted{PackID: 14, PackRef: "p"}},
	}
}

// Messages are written exactly as existing services read them.
func TestGolden(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, s := range samples() {
		seen[s.kind] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			envelope := message.New(s.kind, s.payload, at, "attune-executor")
			envelope.MessageID = "0190c0de-0000-7000-8000-000000000001"
			envelope.CorrelationID = envelope.MessageID
			body, err := envelope.Encode()
			require.NoError(t, err)
			path := filepath.Join("testdata", name+".json")
			if *update {
				require.NoError(t, os.WriteFile(path, append(body, '\n'), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, strings.TrimSuffix(string(want), "\n"), string(body))
		})
	}
	for _, kind := range message.Types {
		require.True(t, seen[kind], "no golden file for %s", kind)
		_, ok := message.RouteOf(kind)
		require.True(t, ok, "no route for %s", kind)
	}
}

func TestDecodeIsTolerant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body  string
		check func(t *testing.T, e message.Envelope[message.ExecutionCompleted])
	}{
		"identifiers may be missing": {
			`{"message_type":"ExecutionCompleted","timestamp":"2026-01-02T03:04:05Z","payload":{"execution_id":1}}`,
			func(t *testing.T, e message.Envelope[message.ExecutionCompleted]) {
				require.NotEmpty(t, e.MessageID)
				require.NotEmpty(t, e.CorrelationID)
				require.Equal(t, "1.0", e.Version)
			},
		},
		"null is missing": {
			`{"message_id":null,"correlation_id":null,"version":null,"headers":null,"message_type":"ExecutionCompleted","timestamp":"2026-01-02T03:04:05Z","payload":{"execution_id":1,"result":null}}`,
			func(t *testing.T, e message.Envelope[message.ExecutionCompleted]) {
				require.NotEmpty(t, e.MessageID)
				require.Equal(t, uint64(0), e.Headers.RetryCount)
			},
		},
		"unknown keys, offsets, nanoseconds, capitalised status": {
			`{"x":1,"message_id":"m","message_type":"ExecutionCompleted","timestamp":"2026-01-02T03:04:05.123456789+02:00","headers":{"retry_count":3,"source_service":"worker","odd":[1]},"payload":{"execution_id":1,"status":"Completed","y":2}}`,
			func(t *testing.T, e message.Envelope[message.ExecutionCompleted]) {
				require.Equal(t, "m", e.MessageID)
				require.Equal(t, "Completed", e.Payload.Status)
				require.Equal(t, time.Date(2026, 1, 2, 1, 4, 5, 123456789, time.UTC), e.Timestamp)
				require.Equal(t, uint64(3), e.Headers.RetryCount)
				require.Equal(t, "worker", e.Headers.SourceService)
				require.JSONEq(t, `[1]`, string(e.Headers.Extra["odd"]))
			},
		},
		"a header of the wrong type is kept, not fatal": {
			`{"message_type":"ExecutionCompleted","timestamp":"2026-01-02T03:04:05Z","headers":{"retry_count":"three"},"payload":{"execution_id":1}}`,
			func(t *testing.T, e message.Envelope[message.ExecutionCompleted]) {
				require.JSONEq(t, `"three"`, string(e.Headers.Extra["retry_count"]))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := message.Decode[message.ExecutionCompleted]([]byte(tc.body))
			require.NoError(t, err)
			tc.check(t, e)
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	const ok = `"message_type":"ExecutionCompleted","timestamp":"2026-01-02T03:04:05Z"`
	for name, tc := range map[string]struct {
		body string
		want error
	}{
		"not JSON": {`hello`, message.ErrNotJSON},
		"an array": {`[]`, message.ErrNotJSON},
		"cut off":  {`{` + ok, message.ErrNotJSON},
		"no type":  {`{"timestamp":"2026-01-02T03:04:05Z","payload":{}}`, message.ErrIncomplete},
		"an unknown type": {
			`{"message_type":"Nonsense","timestamp":"2026-01-02T03:04:05Z","payload":{}}`,
			message.ErrUnknownType,
		},
		"no time": {
			`{"message_type":"ExecutionCompleted","payload":{"execution_id":1}}`,
			message.ErrIncomplete,
		},
		"no payload":           {`{` + ok + `}`, message.ErrIncomplete},
		"payload not object":   {`{` + ok + `,"payload":7}`, message.ErrIncomplete},
		"payload without id":   {`{` + ok + `,"payload":{}}`, message.ErrIncomplete},
		"payload with null id": {`{` + ok + `,"payload":{"execution_id":null}}`, message.ErrIncomplete},
		"too deep": {`{` + ok + `,"payload":{"execution_id":1,"result":` +
			strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`, message.ErrTooLarge},
		"too large": {strings.Repeat(" ", jsonvalue.MessageBytes+1), message.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := message.Decode[message.ExecutionCompleted]([]byte(tc.body))
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// Whatever is written is read back as it was.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z<>&"\\ü…]{0,12}`)
		e := message.New(message.TypeExecutionRequested, message.Dispatch{
			ExecutionID: rapid.Int64().Draw(t, "execution"), WorkerID: rapid.Int64().Draw(t, "worker"),
			ActionRef: text.Draw(t, "ref"), Attempt: rapid.Int32().Draw(t, "attempt"),
			ScheduledAttemptUpdatedAt: at.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "nanos"))),
			Config:                    json.RawMessage(`{"n":12345678901234567890}`),
		}, at.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "time"))), text.Draw(t, "source"))
		e.Headers.RetryCount = rapid.Uint64().Draw(t, "retries")
		body, err := e.Encode()
		require.NoError(t, err)
		got, err := message.Decode[message.Dispatch](body)
		require.NoError(t, err)
		require.Equal(t, e, got)
	})
}

func TestWorkerKeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, "execution.dispatch.worker.7", message.DispatchKey(7))
	require.Equal(t, "execution.cancel.worker.7", message.CancelKey(7))
	require.Equal(t, "worker.7.executions", message.WorkerExecutionsQueue(7))
	require.Equal(t, "worker.7.cancel", message.WorkerCancelQueue(7))
	require.Equal(t, "worker.7.packs", message.WorkerPacksQueue(7))
	for _, key := range []string{message.DispatchKey(9), message.CancelKey(9)} {
		id, ok := message.WorkerOfKey(key)
		require.True(t, ok)
		require.Equal(t, int64(9), id)
	}
	for _, queue := range []string{"worker.9.executions", "worker.9.cancel", "worker.9.packs"} {
		id, ok := message.WorkerOfQueue(queue)
		require.True(t, ok, queue)
		require.EqualValues(t, 9, id)
	}
	for _, queue := range []string{"worker.x.cancel", "worker.9", "worker.9.other", "attune.dlx.queue", "9.cancel"} {
		_, ok := message.WorkerOfQueue(queue)
		require.False(t, ok, queue)
	}
	_, ok := message.WorkerOfKey("execution.dispatch.worker.x")
	require.False(t, ok)
	_, ok = message.WorkerOfKey("execution.requested")
	require.False(t, ok)
}

// Decode never panics, and an accepted message can be encoded and decoded again.
func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		body, err := message.New(s.kind, s.payload, at, "fuzz").Encode()
		require.NoError(f, err)
		f.Add(body)
	}
	f.Add([]byte(`{"message_type":"ExecutionCompleted","timestamp":"2026-01-02T03:04:05Z","headers":{"retry_count":-1},"payload":{"execution_id":1e3}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		raw, err := message.DecodeRaw(body)
		if err != nil {
			return
		}
		again, err := raw.Encode()
		if err != nil {
			return // a year beyond 9999 can be read but not written
		}
		got, err := message.DecodeRaw(again)
		require.NoError(t, err)
		require.Equal(t, raw.MessageID, got.MessageID)
		require.Equal(t, raw.MessageType, got.MessageType)
		_, _ = message.Decode[message.ExecutionCompleted](body)
		_, _ = message.Decode[message.Dispatch](body)
	})
}

// Whatever is wrong with a message, its error is short: it goes into logs and into headers of dead letters.
func TestErrorsDoNotQuoteTheMessage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 1<<20)
	for name, body := range map[string]string{
		"a number":   `{"message_type":"ExecutionRequested","timestamp":"2026-03-01T12:00:00Z","payload":{"execution_id":` + long + `}}`,
		"a time":     `{"message_type":"ExecutionRequested","timestamp":"` + long + `","payload":{"execution_id":1}}`,
		"a type":     `{"message_type":"` + long + `","timestamp":"2026-03-01T12:00:00Z","payload":{"execution_id":1}}`,
		"an id":      `{"message_id":"` + long + `","message_type":"ExecutionRequested","timestamp":"2026-03-01T12:00:00Z","payload":{}}`,
		"headers":    `{"headers":{"a":"` + long + `"},"message_type":"ExecutionRequested","timestamp":"2026-03-01T12:00:00Z","payload":{}}`,
		"a key only": `{"` + long + `":1,"message_type":"ExecutionRequested","timestamp":"2026-03-01T12:00:00Z","payload":{}}`,
	} {
		_, err := message.Decode[message.ExecutionRequested]([]byte(body))
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 1000, name)
	}
}

func TestPeekDispatchTakesLittleMemory(t *testing.T) {
	body := []byte(strings.Repeat("[", 8<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, found := message.PeekDispatch(body)
	runtime.ReadMemStats(&after)
	require.False(t, found)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}
