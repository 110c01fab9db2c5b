package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/supervisetest"
)

// lateStarter sends nothing in its first calls and confirms from then on.
type lateStarter struct {
	mu        sync.Mutex
	failures  int
	confirmed []string
	during    func() // of the first call
}

func (p *lateStarter) Publish(_ context.Context, messages []broker.Message) []broker.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	outcomes := make([]broker.Outcome, len(messages))
	if p.during != nil {
		p.during()
		p.during = nil
	}
	p.failures--
	for i, m := range messages {
		if p.failures >= 0 {
			outcomes[i] = broker.Outcome{Status: broker.NotSent, Err: errors.New("away")}
			continue
		}
		outcomes[i] = broker.Outcome{Status: broker.Confirmed}
		p.confirmed = append(p.confirmed, m.ID)
	}
	return outcomes
}

// Rows that did not get out are repeated in the order of their commits.
func TestRepublishingKeepsTheOrder(t *testing.T) {
	st := testkit.Store(t)
	publisher := &lateStarter{failures: 3}
	relay := New(Config{SweepInterval: time.Hour, SweepAge: time.Hour}, st, publisher, testkit.Logger(t), nil)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint(i))
		commit(t, st, relay, Message{ID: fmt.Sprint(i), RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	testkit.Eventually(t, empty(t, st), 20*time.Second)
	publisher.mu.Lock()
	defer publisher.mu.Unlock()
	require.Equal(t, want, publisher.confirmed)
}

// Rows that are committed while older ones are being published follow them, also if the broker did not take those.
func TestRepeatedRowsPrecedeNewerOnes(t *testing.T) {
	st := testkit.Store(t)
	publisher := &lateStarter{failures: 1}
	relay := New(Config{SweepInterval: time.Hour, SweepAge: time.Hour}, st, publisher, testkit.Logger(t), nil)
	publisher.during = func() {
		commit(t, st, relay, Message{ID: "newer", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	}
	commit(t, st, relay, Message{ID: "older", RoutingKey: "k", Type: "T", Body: []byte(`{}`)})
	require.NoError(t, relay.Start(testkit.Context(t)))
	t.Cleanup(relay.Stop)
	testkit.Eventually(t, empty(t, st), 30*time.Second)
	publisher.mu.Lock()
	defer publisher.mu.Unlock()
	require.Equal(t, []string{"older", "newer"}, publisher.confirmed)
}

func TestRelayLifeCycle(t *testing.T) {
	st := testkit.Store(t)
	supervisetest.Stress(t, func(t *testing.T) supervise.Service {
		t.Helper()
		return New(Config{}, st, &lateStarter{}, telemetry.Discard(), nil)
	})
}
