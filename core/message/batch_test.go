package message_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

// A batch stands for exactly the messages that would have been sent one by one.
func TestBatchStandsForSingleMessages(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 1000, time.UTC)
	var payloads []message.Dispatch
	for i := range int64(3) {
		payloads = append(payloads, message.Dispatch{
			ExecutionID: i + 1, WorkerID: 7, ActionRef: "core.<echo>", Config: json.RawMessage(`{"a": [1, "ü"]}`),
			ScheduledAttemptUpdatedAt: at, Attempt: 2,
		})
	}
	sent, err := message.Batches(message.TypeExecutionBatchRequested, payloads, at, "test")
	require.NoError(t, err)
	require.Len(t, sent, 1)
	require.Equal(t, message.TypeExecutionBatchRequested, sent[0].Type)
	require.Equal(t, 3, sent[0].Items)
	found, err := message.Split(sent[0].Body)
	require.NoError(t, err)
	again, err := message.Split(sent[0].Body)
	require.NoError(t, err)
	require.Equal(t, found, again, "the ids are the same whenever it is split")
	require.Len(t, found, 3)
	for i, one := range found {
		single, err := message.Decode[message.Dispatch](one.Body)
		require.NoError(t, err)
		require.Equal(t, message.TypeExecutionRequested, single.MessageType)
		require.Equal(t, one.MessageID, single.MessageID)
		require.Equal(t, sent[0].ID, single.CorrelationID)
		require.Equal(t, at, single.Timestamp)
		require.Equal(t, "test", single.Headers.SourceService)
		require.Equal(t, payloads[i].ExecutionID, single.Payload.ExecutionID)
		single.MessageID, single.CorrelationID = "m", "c"
		want := message.New(message.TypeExecutionRequested, payloads[i], at, "test")
		want.MessageID, want.CorrelationID = "m", "c"
		wanted, err := want.Encode()
		require.NoError(t, err)
		got, err := single.Encode()
		require.NoError(t, err)
		require.Equal(t, string(wanted), string(got))
		payload, err := message.DecodePayload[message.Dispatch](one.Payload)
		require.NoError(t, err)
		require.Equal(t, single.Payload, payload)
	}
}

func TestBatchesKeepTheirBounds(t *testing.T) {
	at := time.Now()
	of := func(n, size int) (payloads []message.Dispatch) {
		for i := range n {
			payloads = append(payloads, message.Dispatch{
				ExecutionID: int64(i + 1), WorkerID: 7, Config: json.RawMessage(`"` + strings.Repeat("x", size) + `"`),
			})
		}
		return payloads
	}
	for _, c := range []struct {
		n, size int
		items   []int
	}{
		{0, 10, nil},
		{1, 10, []int{1}},
		{200, 1 << 10, []int{200}},
		{201, 10, []int{200, 1}},
		{33, 16 << 10, []int{15, 15, 3}},
		{2, message.MaxBatchBytes, []int{1, 1}},
	} {
		sent, err := message.Batches(message.TypeExecutionBatchRequested, of(c.n, c.size), at, "test")
		require.NoError(t, err)
		var items []int
		for _, one := range sent {
			items = append(items, one.Items)
			if one.Items == 1 {
				require.Equal(t, message.TypeExecutionRequested, one.Type, "one execution goes by itself")
				continue
			}
			require.LessOrEqual(t, len(one.Body), message.MaxBatchBytes)
			found, err := message.Split(one.Body)
			require.NoError(t, err)
			require.Len(t, found, one.Items)
		}
		require.Equal(t, c.items, items, "%d of %d bytes", c.n, c.size)
	}
}

func TestOtherMessagesAreNotSplit(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"a single message": {`{"message_type":"ExecutionRequested","timestamp":"2026-03-01T12:00:00Z","payload":{"executions":[{}]}}`, message.ErrUnknownType},
		"without items":    {`{"message_type":"ExecutionBatchRequested","timestamp":"2026-03-01T12:00:00Z","payload":{"executions":[]}}`, message.ErrIncomplete},
		"no JSON":          {`{`, message.ErrNotJSON},
	} {
		_, err := message.Split([]byte(c.body))
		require.ErrorIs(t, err, c.want, name)
	}
	// An item that is not as it must be is the trouble of its own message.
	found, err := message.Split([]byte(
		`{"message_type":"ExecutionBatchCompleted","timestamp":"2026-03-01T12:00:00Z","payload":{"executions":[{"execution_id":1},7]}}`))
	require.NoError(t, err)
	require.Len(t, found, 2)
	_, err = message.Decode[message.ExecutionCompleted](found[0].Body)
	require.NoError(t, err)
	_, err = message.Decode[message.ExecutionCompleted](found[1].Body)
	require.ErrorIs(t, err, message.ErrIncomplete)
}

// A batch that is read keeps the bounds of one that is written, and its error does not quote it.
func TestForgedBatchesAreNotSplit(t *testing.T) {
	of := func(correlation, headers string, n int) []byte {
		return []byte(`{"message_type":"ExecutionBatchCompleted","timestamp":"2026-03-01T12:00:00Z","correlation_id":"` +
			correlation + `","headers":{` + headers + `},"payload":{"executions":[` +
			strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}}`)
	}
	found, err := message.Split(of("c", "", message.MaxBatchItems))
	require.NoError(t, err)
	require.Len(t, found, message.MaxBatchItems)
	for name, body := range map[string][]byte{
		"too many":        of("c", "", message.MaxBatchItems+1),
		"a million":       of("c", "", 1_000_000),
		"a long id":       of(strings.Repeat("c", 256), "", 1),
		"a long envelope": of("c", `"a":"`+strings.Repeat("x", 1<<10)+`"`, 2),
	} {
		_, err := message.Split(body)
		require.ErrorIs(t, err, message.ErrTooLarge, name)
		require.Less(t, len(err.Error()), 500, name)
	}
}
