package alerting_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// TestMoreTargetsThanARuleRaisesDoNotFlap: open alerts stay as long as their condition holds, whatever
// the order of values. One that ends makes room for another.
func TestMoreTargetsThanARuleRaisesDoNotFlap(t *testing.T) {
	b := setup(t, alerting.Rules{"deep": {Enabled: true, Measure: "queue_length", Above: 10, Severity: "warning"}})
	const targets = alerting.VerdictsPerRule + 50
	value := func(i, round int) float64 { return float64(100 + (i*37+round*53)%targets) }
	round := 0
	b.view.edit = func(m *alerting.Measures) {
		m.Samples["queue_length"] = nil
		for i := range targets {
			m.Samples["queue_length"] = append(m.Samples["queue_length"],
				alerting.Sample{Target: fmt.Sprintf("q%d", i), Value: value(i, round)})
		}
	}
	ids := func() string {
		return testkitText(t, b.store,
			`select coalesce(string_agg(id::text, ',' order by id), '') from alert where cleared is null`)
	}
	b.tick()
	first := ids()
	require.Equal(t, alerting.VerdictsPerRule, testkit.Count(t, b.store, `select count(*) from alert`))
	for round = 1; round <= 3; round++ {
		b.tick()
		require.Equal(t, first, ids())
	}
	require.Zero(t, testkit.Count(t, b.store, `select count(*) from alert where cleared is not null`))
	require.Equal(t, alerting.VerdictsPerRule,
		testkit.Count(t, b.store, `select count(*) from alert where seen > since`), "all have their newest values")

	var ended string
	all := b.view.edit
	b.view.edit = func(m *alerting.Measures) {
		all(m)
		for i := range m.Samples["queue_length"] {
			if m.Samples["queue_length"][i].Target == ended {
				m.Samples["queue_length"][i].Value = 1
			}
		}
	}
	ended = testkitText(t, b.store, `select target from alert where cleared is null order by id limit 1`)
	b.tick()
	b.tick()
	require.Equal(t, "cleared", b.state("deep", ended))
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from alert where cleared is not null`))
	require.Equal(t, alerting.VerdictsPerRule,
		testkit.Count(t, b.store, `select count(*) from alert where cleared is null`))
}

// TestMeasuringHoldsNoTransaction uses one connection for the measurement and for reads during it.
func TestMeasuringHoldsNoTransaction(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(testkit.Context(t), time.Minute)
	defer cancel()
	st, err := store.Open(ctx, store.Config{URL: testkit.Database(t), MaxConnections: 1}, telemetry.Discard())
	require.NoError(t, err)
	t.Cleanup(st.Close)
	rules := shortened()
	view := &edited{Reader: alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: st}), rules,
		&fakeProbe{})}
	view.edit = func(*alerting.Measures) {
		n := 0
		require.NoError(t, st.Pool().QueryRow(ctx, `select count(*) from pg_locks where locktype = 'advisory' and database =
			(select oid from pg_database where datname = current_database())`).Scan(&n))
		require.Zero(t, n, "no session waits for the measurement")
	}
	loop := alerting.New(alerting.Config{Rules: rules},
		alerting.Deps{Store: st, View: view, Logger: telemetry.Discard()})
	require.NoError(t, loop.Tick(ctx))
	require.Equal(t, 1, testkit.Count(t, st, `select count(*) from alert where rule = 'no_active_workers'`))
}

// A replica with an older measurement does not overwrite the newer result of another.
func TestAnOlderMeasurementOverwritesNothing(t *testing.T) {
	rules := shortened()
	b := setup(t, rules)
	b.addDeadLetters(11)
	b.tick()
	require.Equal(t, "firing", b.state("dlq_depth_warning", ""))
	other := b.another(rules)
	b.view.edit = func(*alerting.Measures) { // this replica has measured and is late
		b.view.edit = nil
		b.noDeadLetters()
		require.NoError(t, other.Tick(t.Context()))
		require.Equal(t, "cleared", b.state("dlq_depth_warning", ""))
	}
	b.tick()
	require.Equal(t, "cleared", b.state("dlq_depth_warning", ""), "the older measurement does not raise it again")
	require.Equal(t, 1, testkit.Count(t, b.store, `select count(*) from alert where rule = 'dlq_depth_warning'`))
}
