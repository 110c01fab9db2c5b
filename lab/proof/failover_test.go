package proof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// The primary is killed under load and its synchronous standby promoted. Replicas, workers and clients name both
// servers in their URL and continue; every execution whose id a client received runs once.
func TestTheSynchronousStandbyTakesOver(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "promote a standby under load")
	ctx := testkit.Context(t)
	stack := testkit.NewStack(t, func(c *devstack.Config) { c.Durable = true })
	_, err := migrations.Up(ctx, migrations.Options{URL: stack.DatabaseURL(), Schema: testkit.Schema})
	require.NoError(t, err)
	standby := testkit.StartStandby(t, stack, true)
	s := newStageAt(t, servers{
		Database: standby.Both(stack.DatabaseURL()), AMQP: testkit.VHost(t),
		Management: testkit.ManagementURL(t),
	})
	s.runLog.longest = 300 * time.Millisecond
	s.worker("w1")
	s.worker("w2")
	s.serveTwo()
	ids := s.load(func() bool { return true })

	require.NoError(t, stack.KillPostgres(ctx))
	_, err = s.submitter.RequestMany(ctx, []submit.Request{{ActionRef: actFree}})
	require.Error(t, err, "a standby accepts no requests")
	standby.Promote()
	testkit.Eventually(t, func() bool { return s.store.Ping(ctx) == nil }, 20*time.Second, "the client is connected")
	s.store.Pool().Reset()
	ids = append(ids, s.load(func() bool { return true })...)
	s.age()
	s.over()
	s.requireOnce(ids)
}
