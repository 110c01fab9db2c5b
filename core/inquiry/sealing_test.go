package inquiry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// Secrets of an answer that another service has written in the clear are encrypted before the answer has consequences:
// no row and no message has them, also after a late write.
func TestSecretsInAnswersOfAnotherServiceAreSealed(t *testing.T) {
	b := setup(t)
	ctx := testkit.Context(t)
	keys, err := secret.NewKeyring(strings.Repeat("k", secret.LeastKey))
	require.NoError(t, err)
	form := json.RawMessage(`{"user": {"type": "string"}, "token": {"type": "string", "secret": true}}`)
	task := b.task(t, func(q *inquiry.Question) { q.Schema = form })
	result := b.result(t, object{"__inquiry": object{"prompt": "go on?", "response_schema": form}})
	plain := b.task(t)
	const write = `UPDATE inquiry SET status = 'responded', response = $1, responded_at = now() WHERE id = ANY ($2)`
	ids := []int64{task.inquiry, result.inquiry, plain.inquiry}
	testkit.Exec(t, b.store, write, `{"user": "x", "token": "hunter2", "n": 12345678901234567890}`, ids[:2])
	testkit.Exec(t, b.store, write, `"anything"`, ids[2:])

	b.watch(t, func(c *inquiry.WatchConfig) { c.Keys = keys })
	b.becomes(t, task, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, result, inquiry.Responded, lifecycle.StatusCompleted)
	b.becomes(t, plain, inquiry.Responded, lifecycle.StatusCompleted)
	testkit.Exec(t, b.store, write, `{"token": "hunter2"}`, ids)

	b.relay.mu.Lock()
	for _, m := range b.relay.messages {
		require.NotContains(t, string(m.Body), "hunter2")
	}
	b.relay.mu.Unlock()
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM inquiry i WHERE i::text LIKE '%hunter2%'`))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM execution e WHERE e::text LIKE '%hunter2%'`))
	require.Contains(t, b.resultOf(t, task.execution), `"n": 12345678901234567890`)
	require.Contains(t, b.resultOf(t, plain.execution), `"anything"`)
	for _, a := range []asked{task, result} {
		values, err := store.SecretsOf(ctx, b.store.Queries, secret.OfResult, a.execution)
		require.NoError(t, err)
		require.Len(t, values, 1)
		require.Equal(t, "/response/token", values[0].Path)
		opened, err := keys.Open(values[0])
		require.NoError(t, err)
		require.Equal(t, "hunter2", opened)
		require.Equal(t, 1, testkit.Count(t, b.store,
			`SELECT count(*) FROM inquiry WHERE id = $1 AND response #> '{token,redacted}' = 'true'`, a.inquiry))
	}
}

// Without a key an answer that was taken elsewhere is not held back.
func TestAnswersOfAnotherServiceNeedNoKey(t *testing.T) {
	b := setup(t)
	task := b.task(t,
		func(q *inquiry.Question) { q.Schema = json.RawMessage(`{"token": {"type": "string", "secret": true}}`) })
	testkit.Exec(t, b.store, `UPDATE inquiry SET status = 'responded', response = '{"token": "hunter2"}' WHERE id = $1`,
		task.inquiry)
	b.watch(t)
	b.becomes(t, task, inquiry.Responded, lifecycle.StatusCompleted)
	require.Contains(t, b.resultOf(t, task.execution), "hunter2")
}
