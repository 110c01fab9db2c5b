package alerting_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// An installation that has rules on core.alert hears of each alert once, when it
// fires; one that has no such trigger hears nothing.
func TestAlertsFireTheRulesOfTheInstallation(t *testing.T) {
	b := setup(t, shortened())
	testkit.Exec(t, b.store, `DELETE FROM trigger WHERE ref = 'core.alert'`)
	b.probe.set(func(p *fakeProbe) { p.depth = 1000 })
	b.tick()
	b.tick()
	require.Equal(t, "firing", b.state("dlq_buildup", ""))
	require.Zero(t, testkit.Count(t, b.store, `SELECT count(*) FROM event`))

	b.exec(`INSERT INTO trigger (ref, label) VALUES ('core.alert', 'Alert')`)
	b.probe.set(func(p *fakeProbe) { p.lost = []string{"execution.completed"} })
	for range 4 {
		b.tick()
	}
	require.Equal(t, 1, testkit.Count(t, b.store, `SELECT count(*) FROM event WHERE trigger_ref = 'core.alert' AND payload ->> 'failure_type' = 'dlq_routes_lost'`))
	var payload struct {
		Severity  string `json:"severity"`
		Summary   string `json:"summary"`
		Component string `json:"component_type"`
	}
	raw := testkitText(t, b.store,
		`SELECT payload::text FROM event WHERE payload ->> 'failure_type' = 'dlq_routes_lost'`)
	require.NoError(t, json.Unmarshal([]byte(raw), &payload))
	require.Equal(t, "critical", payload.Severity)
	require.Equal(t, "executor", payload.Component)
	require.NotEmpty(t, payload.Summary)
	require.Equal(t, testkit.Count(t, b.store, `SELECT count(*) FROM event`),
		testkit.Count(t, b.store,
			`SELECT coalesce(sum(cardinality(message_ids)), 0) FROM outbox WHERE 'event.created' = ANY (routing_keys)`), "each has its message")
}
