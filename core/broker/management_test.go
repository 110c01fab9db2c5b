package broker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/lab/testkit"
)

func TestManagementReadsTheBroker(t *testing.T) {
	b := newRig(t)
	require.NoError(t, b.management.Ping(b.ctx))
	overview, err := b.management.Overview(b.ctx)
	require.NoError(t, err)
	require.NotEmpty(t, overview.RabbitMQVersion)
	require.NotEmpty(t, overview.Node)
	alarms, err := b.management.Alarms(b.ctx)
	require.NoError(t, err)
	require.Empty(t, alarms)

	require.NoError(t, b.DeclareExecutor(b.ctx))
	bindings, err := b.management.QueueBindings(b.ctx, message.QueueDeadLetter)
	require.NoError(t, err)
	require.Len(t, bindings, 1+len(message.DeadLetterKeys()))
	require.Contains(t, bindings, broker.Binding{
		Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter, RoutingKey: message.KeyEventCreated,
	})

	b.publishAll(broker.Message{ID: "1", RoutingKey: message.QueueEvents})
	testkit.Eventually(t, func() bool {
		queue, err := b.management.Queue(b.ctx, message.QueueEvents)
		require.NoError(t, err)
		require.Equal(t, "attune.dlx", queue.Arguments["x-dead-letter-exchange"])
		return queue.Ready != nil && *queue.Ready == 1 && queue.Consumers != nil && *queue.Consumers == 0 &&
			queue.Unacked != nil
	}, waitTimeout)
	queues, err := b.management.Queues(b.ctx)
	require.NoError(t, err)
	require.Len(t, queues, 7)

	_, err = b.management.Queue(b.ctx, "a/missing one")
	require.ErrorIs(t, err, broker.ErrNotFound)
}

// answering makes a client for a server that answers everything alike.
func answering(t *testing.T, status int, body string) *broker.Management {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if json.Valid([]byte(body)) {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the assertions notice an error
	}))
	t.Cleanup(server.Close)
	management, err := broker.NewManagement(strings.Replace(server.URL, "://", "://user:secret@", 1)+"/api/", "/",
		time.Minute)
	require.NoError(t, err)
	t.Cleanup(management.Close)
	return management
}

// A queue that the broker has not counted yet is not an empty queue.
func TestAbsentNumbersAreNotZero(t *testing.T) {
	t.Parallel()
	management := answering(t, http.StatusOK,
		`[{"name":"new","vhost":"/"},{"name":"old","consumers":0,"messages_ready":2,"messages_unacknowledged":0}]`)
	queues, err := management.Queues(testkit.Context(t))
	require.NoError(t, err)
	require.Nil(t, queues[0].Consumers)
	require.Nil(t, queues[0].Ready)
	require.Nil(t, queues[0].Unacked)
	require.Nil(t, queues[0].Rates.Publish.PerSecond)
	require.Zero(t, *queues[1].Consumers)
	require.Equal(t, 2, *queues[1].Ready)
}

func TestManagementRefusals(t *testing.T) {
	t.Parallel()
	refusing := answering(t, http.StatusUnauthorized, `{"error":"not_authorised","reason":"Login failed"}`)
	var refused *broker.ManagementError
	require.ErrorAs(t, refusing.Ping(testkit.Context(t)), &refused)
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	require.Contains(t, refused.Reason, "Login failed")
	_, err := refusing.Policies(testkit.Context(t))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	require.NotContains(t, err.Error(), "secret")

	alarmed := answering(t, http.StatusServiceUnavailable, `{"status":"failed","reason":"There are alarms in effect in the cluster","alarms":[{"node":"a@b","resource":"memory"}]}`)
	alarms, err := alarmed.Alarms(testkit.Context(t))
	require.NoError(t, err)
	require.Equal(t, []broker.Alarm{{Node: "a@b", Resource: "memory"}}, alarms)

	broken := answering(t, http.StatusBadGateway, "no backend")
	require.ErrorAs(t, broken.Ping(testkit.Context(t)), &refused)
	require.Equal(t, "no backend", refused.Reason)
	_, err = broken.QueueBindings(testkit.Context(t), "q")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusBadGateway, refused.StatusCode)

	for _, bad := range []string{"amqp://h", "http://", "http://u:secret@h:port"} {
		_, err := broker.NewManagement(bad, "/", time.Second)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "secret")
	}
}

// Both kinds of calls end with the context and at the client's own timeout.
func TestManagementHasDeadlines(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	management, err := broker.NewManagement(server.URL, "/", 50*time.Millisecond)
	require.NoError(t, err)
	defer management.Close()
	require.ErrorIs(t, management.Ping(testkit.Context(t)), context.DeadlineExceeded)
	_, err = management.Policies(testkit.Context(t))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	require.ErrorIs(t, management.Ping(ctx), context.Canceled)
	_, err = management.Alarms(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
