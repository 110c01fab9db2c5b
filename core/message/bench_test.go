package message_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

func BenchmarkEnvelope(b *testing.B) {
	payload := message.ExecutionCompleted{
		ExecutionID: 12345, ActionID: 7, ActionRef: "core.http_request", Status: "completed",
		Result: json.RawMessage(`{"status":200,"body":"hello","succeeded":true}`), CompletedAt: time.Now().UTC(),
	}
	e := message.New(message.TypeExecutionCompleted, payload, time.Now(), "worker")
	body, err := e.Encode()
	require.NoError(b, err)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := message.Decode[message.ExecutionCompleted](body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
