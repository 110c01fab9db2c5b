package dashboard

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bundle is an installation and a dashboard with one session on it.
type bundle struct {
	t        *testing.T
	observer *store.Store
	session  *store.Store
	monitor  *alerting.Reader
}

func setup(t *testing.T, size Size) *bundle {
	t.Helper()
	url := testkit.Database(t)
	b := &bundle{t: t, observer: testkit.OpenStore(t, url)}
	require.NoError(t, Fill(t.Context(), b.observer, size))
	b.session = testkit.OpenStore(t, url, func(c *store.Config) { c.MaxConnections, c.ReadOnly = 1, true })
	b.monitor = alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: b.session}), nil, nil)
	return b
}

// rounds is more than the five times that a session plans a statement, so that its cached plan runs too.
const rounds = 7

// spend returns the usage of one round.
func (b *bundle) spend(r Reading) Usage {
	b.t.Helper()
	u, err := Spend(b.t.Context(), b.observer, b.session, func(ctx context.Context) error {
		for range rounds {
			if err := r.Read(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(b.t, err, r.Name)
	u.Rows, u.Blocks = u.Rows/rounds, u.Blocks/rounds
	return u
}

// readings returns all readings of the dashboard.
func (b *bundle) readings(size Size) []Reading {
	return append(Polls(b.monitor), Looks(b.monitor, size)...)
}

// No reading scans all executions, neither with planned nor with cached plans, by the server's statistics.
func TestNoReadingScansEveryExecution(t *testing.T) {
	size := Size{Executions: 16_000, Queued: 4_000}
	b := setup(t, size)
	for _, r := range b.readings(size) {
		u := b.spend(r)
		require.NotContains(t, u.Scans, "execution", "%s reads every execution", r.Name)
		require.NotContains(t, u.Scans, "execution_admission_entry", "%s reads every queued execution", r.Name)
	}
}

// No reading costs more in a larger database, apart from a deeper index: both sizes are above the bounds.
func TestNoReadingCostsMoreInALargerDatabase(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "fill two large databases")
	// The bounds of these are wider than the smaller size: blocks at the bound.
	wide := map[string]int64{
		"the last hour of queues":     12 * 5_000, // each wait of 5,000 in each of twelve queues
		"workflows, of no action":     45_000,
		"workflows, by an expression": 1_500,
		"inquiries, by an expression": 45_000,
	}
	sizes := []Size{{Executions: 250_000, Queued: 50_000}, {Executions: 1_000_000, Queued: 200_000}}
	small, large := setup(t, sizes[0]), setup(t, sizes[1])
	var more []string
	for i, r := range small.readings(sizes[0]) {
		before, after := small.spend(r), large.spend(large.readings(sizes[1])[i])
		t.Logf("%-40s %6d → %6d rows, %6d → %6d blocks", r.Name, before.Rows, after.Rows, before.Blocks, after.Blocks)
		if after.Blocks > max(before.Blocks*3/2+100, wide[r.Name]) {
			more = append(more, r.Name)
		}
	}
	require.Empty(t, more, "readings that look at more where four times as many executions are stored")
}

func TestAnInstallationIsFilledOnlyIfItFits(t *testing.T) {
	st := testkit.Store(t)
	require.ErrorContains(t, Fill(t.Context(), st, Size{Executions: 1_000, Queued: 500}), "too few")
	require.NoError(t, Fill(t.Context(), st, Size{Executions: 1_000, Queued: 100}))
	require.Equal(t, 1_000, testkit.Count(t, st, `select count(*) from execution`))
	require.Equal(t, 100,
		testkit.Count(t, st, `select count(*) from execution_admission_entry where status = 'queued'`))
	require.Zero(t, testkit.Count(t, st, `select count(*) from execution_admission_entry q join execution_admission_state s on s.id = q.state_id
		where q.status = 'queued' and s.queued_count = 0`))
}

func TestAReportNamesItsMachine(t *testing.T) {
	t.Parallel()
	r := Report{
		Size: Full, Rounds: 20, PostgreSQL: "15.18", CPUs: 2, Poll: 31.5, Budget: 50,
		Polls: []Cost{{Name: "overview", Milliseconds: 12.25, Worst: 14, Statements: 18, Rows: 9000}},
		Looks: []Cost{{Name: "dead letters"}},
	}
	var out strings.Builder
	r.Print(&out)
	require.Contains(t, out.String(), "1000000 executions, 100000 waiting; PostgreSQL 15.18, 2 CPUs, 20 rounds")
	require.Regexp(t, `overview +12\.25 +14\.00 +18\.0 +9000`, out.String())
	require.Regexp(t, `one poll of everything +31\.50 +of 50`, out.String())
}
