package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// On a standby every view works, and acting is disabled with the reason.
func TestTheDashboardReadsAStandby(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "read a standby of the test's own")
	stack := testkit.NewStack(t, func(c *devstack.Config) { c.Durable = true })
	_, err := migrations.Up(testkit.Context(t), migrations.Options{URL: stack.DatabaseURL(), Schema: testkit.Schema})
	require.NoError(t, err)
	st := testkit.OpenStore(t, stack.DatabaseURL())
	testkit.Worker(t, st, "worker-a", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	standby := testkit.StartStandby(t, stack, false)
	x := openTerminalIn(t, []string{
		"HOME=/nonexistent", "ATTUNE__DATABASE__URL=" + standby.DatabaseURL,
		"ATTUNE__MESSAGE_QUEUE__URL=" + stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + stack.ManagementURL(),
	}, "--view", "workers", "--refresh", "500ms")
	x.shows("worker-a")
	x.shows("PG ●")
	for _, view := range [][2]string{
		{"1", "[1 "},
		{"2", "[2 "},
		{"3", "[3 "},
		{"5", "[5 "},
		{"6", "[6 "},
		{"7", "[7 "},
		{"8", "[8 "},
		{"9", "[9 "},
		{"4", "[4 "},
	} {
		x.press(view[0])
		x.shows(view[1])
		x.hides("SQLSTATE")
		x.shows("PG ●")
	}
	x.press("4")
	x.shows("worker-a")
	x.press("A")
	x.shows("Acting is disabled: this database is a standby, which takes no changes")

	testkit.Worker(t, st, "worker-b", func(w *testkit.WorkerRow) { w.HeartbeatAge = -time.Hour })
	x.shows("worker-b") // the standby follows, and so does the view
}
