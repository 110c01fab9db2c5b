package monitor

import (
	"context"
	"testing"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// A read-only session receives notifications, also after its connection was lost.
func TestReadOnlySessionsReceiveNotifications(t *testing.T) {
	url := testkit.Database(t)
	writer := testkit.OpenStore(t, url)
	viewer := New(Config{}, Deps{Store: testkit.OpenStore(t, url, func(c *store.Config) { c.ReadOnly = true })})
	heard, ended := make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		viewer.Listen(ctx, func() { heard <- struct{}{} })
	}()
	const listening = `FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query ILIKE 'listen "workflow_execution%' AND pid <> pg_backend_pid()`
	for _, channel := range []string{"execution_status_changed", "workflow_execution_status_changed"} {
		testkit.Eventually(t, func() bool { return testkit.Count(t, writer, `SELECT count(*) `+listening) == 1 },
			20*time.Second, "a session listens")
		testkit.Exec(t, writer, `SELECT pg_notify($1, '{"status": "completed"}')`, channel)
		select {
		case <-heard:
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing is heard of %s", channel)
		}
		testkit.Exec(t, writer, `SELECT pg_terminate_backend(pid, 5000) `+listening)
	}
	cancel()
	<-ended
}
