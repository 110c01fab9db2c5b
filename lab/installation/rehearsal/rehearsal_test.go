package rehearsal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation/rehearsal"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Work in progress continues after an adoption, and after a hand-back.
func TestAnInstallationIsAdoptedServedAndHandedBack(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "rehearse an adoption as make adopt does; core/handback and migrations have its parts")
	var out strings.Builder
	report, err := rehearsal.Run(testkit.Context(t), rehearsal.Config{
		DatabaseURL: testkit.EmptyDatabase(t), AMQPURL: testkit.VHost(t), ManagementURL: testkit.ManagementURL(t),
		Out: &out, Logger: testkit.Logger(t), StaleAfter: 20 * time.Second,
	})
	for _, o := range report.Outcomes {
		t.Logf("%v %d %s: %s (want %s)", o.OK, o.ID, o.What, o.Got, o.Want)
	}
	require.NoError(t, err, out.String())
	require.Empty(t, report.Failed())
	require.Greater(t, len(report.Outcomes), 50)
}
