package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/engine"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/workflow"
	"github.com/attune-go/attune/lab/testkit"
)

// atFault is a replica with a load, whose installation a test breaks and mends.
type atFault struct {
	*bundle
	engine *engine.Engine
	log    logBuffer
	events int
	flows  []int64
}

// newFaultyInstallation starts a replica that reaches the database as role says, workers, and a
// load of executions with and without a limit, of workflows and of events.
func newFaultyInstallation(t *testing.T, change ...func(*config.Config)) *atFault {
	t.Helper()
	a := &atFault{bundle: setup(t)}
	a.door(t, 2)
	limited := testkit.Action(t, a.store, "fault.limited", func(r *testkit.ActionRow) { r.Entrypoint = "core.noop" })
	testkit.Policy(t, a.store, limited, 2)
	a.chain(t)
	cfg := a.config()
	listening(cfg)
	for _, c := range change {
		c(cfg)
	}
	logger, err := telemetry.NewLogger(&a.log, "info", "text")
	require.NoError(t, err)
	a.engine, err = engine.New(testkit.Context(t), cfg, engine.Deps{Logger: logger, Version: "test"})
	require.NoError(t, err)
	require.NoError(t, a.engine.Start(testkit.Context(t)))
	t.Cleanup(func() {
		require.NoError(t, a.engine.Stop(context.Background()))
		if t.Failed() {
			t.Log(a.log.text.String())
		}
	})
	a.worker(t, "w1", 10)
	a.load(t)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, a.store, `SELECT count(*) FROM execution WHERE status = 'completed'`) >= 10
	}, 30*time.Second, "the load is under way")
	return a
}

func (a *atFault) load(t *testing.T) {
	t.Helper()
	a.request(t, "fault.limited", 60, `{}`)
	a.request(t, "core.noop", 60, `{}`)
	a.flows = append(a.flows, a.request(t, "fault.flow", 8, `{}`)...)
	a.emit(t, 15)
	a.events += 15
}

// chain makes a workflow of three tasks, one after the other.
func (a *atFault) chain(t *testing.T) {
	t.Helper()
	const ref, text = "fault.flow", `
version: "1"
tasks:
  - {name: one, action: core.noop, next: [{do: [two]}]}
  - {name: two, action: fault.limited, next: [{do: [three]}]}
  - {name: three, action: core.noop}
`
	parsed, mistakes, _ := workflow.Parse(ref, []byte(text))
	require.Empty(t, mistakes)
	definition, err := parsed.JSON()
	require.NoError(t, err)
	action := testkit.Action(t, a.store, ref)
	testkit.Exec(t, a.store, `WITH d AS (
			INSERT INTO workflow_definition (ref, pack, pack_ref, label, version, definition)
			VALUES ($2::text, $3, 'fault', $2::text, '1.0.0', $4) RETURNING id)
		UPDATE action SET workflow_def = d.id FROM d WHERE action.id = $1`, action.ID, ref, action.PackID, definition)
}

// held waits until /readyz reports the fault of the installation, from any consumer, for longer than a message is
// retried.
func (a *atFault) held(t *testing.T, words ...string) {
	t.Helper()
	var detail string
	testkit.Eventually(t, func() bool {
		code, failing := readiness(t, a.engine)
		detail = failing["installation"]
		for _, word := range words {
			if code != http.StatusServiceUnavailable || !strings.Contains(detail, word) {
				return false
			}
		}
		return true
	}, 30*time.Second, "it is not ready, because of %v: %s", words, detail)
	since := time.Now()
	testkit.Eventually(t, func() bool { return time.Since(since) > 9*time.Second }, 20*time.Second)
	a.nothingEnded(t)
	_, metrics := fetch(t, a.engine, "/metrics")
	require.Regexp(t, `attune_installation_faults{replica="`+a.engine.ID().String()[:8]+`"} [1-9]`, metrics)
	require.Contains(t, metrics, `attune_ready{check="installation"} 0`)
	require.Equal(t, 1, a.log.count("Installation is at fault"), "one line when it begins")
}

func (a *atFault) nothingEnded(t *testing.T) {
	t.Helper()
	require.Zero(t, testkit.Count(t, a.store, `SELECT count(*) FROM execution
		WHERE status IN ('failed', 'timeout', 'abandoned', 'cancelled')`))
	require.Zero(t, testkit.Count(t, a.store, `SELECT count(*) FROM dead_letter`))
	require.Zero(t, testkit.Count(t, a.store, `SELECT count(*) FROM enforcement WHERE status = 'disabled'`))
}

// mended waits until the replica is ready and everything has completed, once.
func (a *atFault) mended(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		code, _ := readiness(t, a.engine)
		return code == http.StatusOK
	}, 60*time.Second, "it is ready again by itself")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, a.store, `SELECT count(*) FROM enforcement WHERE status = 'processed'`) == 2*a.events
	}, 60*time.Second, "every event has fired its rules")
	a.settled(t, 60*time.Second)
	a.nothingEnded(t)
	require.Equal(t, testkit.Count(t, a.store, `SELECT count(*) FROM execution`),
		testkit.Count(t, a.store, `SELECT count(*) FROM execution WHERE status = 'completed'`))
	require.Equal(t, 3*len(a.flows),
		testkit.Count(t, a.store, `SELECT count(*) FROM execution WHERE parent = ANY ($1)`, a.flows))
	require.Zero(t, testkit.Count(t, a.store, `SELECT count(*) FROM (
		SELECT entity_id FROM execution_history WHERE new_values->>'status' = 'running' GROUP BY entity_id HAVING count(*) > 1) twice`))
	require.Equal(t, a.log.count("Installation is at fault"), a.log.count("Installation is repaired"))
}

// A column that the batches need is dropped under load, and added again.
func TestADroppedColumnHoldsAllWorkAndEndsNone(t *testing.T) {
	a := newFaultyInstallation(t)
	testkit.Exec(t, a.store, `ALTER TABLE execution DROP COLUMN worker_affinity`)
	a.emit(t, 15)
	a.events += 15
	a.held(t, "worker_affinity", "SQLSTATE 42703",
		"run the version of attune-executor that fits the schema")

	view := alerting.NewReader(monitor.New(monitor.Config{}, monitor.Deps{Store: a.store}), nil, nil)
	testkit.Eventually(t, func() bool {
		all, err := view.Replicas(testkit.Context(t))
		return err == nil && all.Total == 1 &&
			strings.Contains(strings.Join(all.List[0].Problems, " "), "worker_affinity")
	}, 20*time.Second, "doctor and the dashboard read it in its row")
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, a.store,
			`SELECT count(*) FROM alert WHERE rule = 'installation_fault' AND fired IS NOT NULL AND cleared IS NULL`) == 1
	}, 30*time.Second, "an alert is raised")

	testkit.Exec(t, a.store, `ALTER TABLE execution ADD COLUMN worker_affinity jsonb`)
	a.load(t)
	a.mended(t)
}

// The statement that reads workflows fails: no workflow is ended for it, as it would
// be that fails by itself.
func TestAWrongStatementInAdvancingEndsNoWorkflow(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "break a statement of workflows; another test drops a column")
	a := newFaultyInstallation(t)
	testkit.Exec(t, a.store, `ALTER TABLE workflow_execution RENAME COLUMN variables TO variables_away`)
	a.load(t)
	a.held(t, "variables", "does not exist") // whichever statement met it
	testkit.Exec(t, a.store, `ALTER TABLE workflow_execution RENAME COLUMN variables_away TO variables`)
	a.mended(t)
}

// The statements of events and enforcements fail: no event and no enforcement becomes
// a dead letter.
func TestAMissingTableOfRulesLosesNoEvent(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "take the table of rules away; another test drops a column")
	a := newFaultyInstallation(t)
	testkit.Exec(t, a.store, `ALTER TABLE rule RENAME TO rule_away`)
	a.emit(t, 15)
	a.events += 15
	a.held(t, `relation "rule" does not exist`, "SQLSTATE 42P01")
	testkit.Exec(t, a.store, `ALTER TABLE rule_away RENAME TO rule`)
	a.mended(t)
}

// loginAs has the engine reach the database by a login of its own, without the rights
// of an owner, and returns its name.
func loginAs(t *testing.T, cfg *config.Config) (role string) {
	t.Helper()
	role = "attune_test_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	st := testkit.OpenStore(t, cfg.Database.URL)
	testkit.Exec(t, st, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD 'secret'`, role))
	t.Cleanup(func() {
		for _, sql := range []string{`DROP OWNED BY ` + role, `DROP ROLE ` + role} {
			_, err := st.Pool().Exec(context.Background(), sql)
			require.NoError(t, err)
		}
	})
	for _, grant := range []string{
		`GRANT USAGE, CREATE ON SCHEMA %[1]s TO %[2]s`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO %[2]s`,
		`GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA %[1]s TO %[2]s`,
		`GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %[1]s TO %[2]s`,
	} {
		testkit.Exec(t, st, fmt.Sprintf(grant, testkit.Schema, role))
	}
	at, err := url.Parse(cfg.Database.URL)
	require.NoError(t, err)
	at.User = url.UserPassword(role, "secret")
	cfg.Database.URL = at.String()
	return role
}

// The engine's login loses a privilege, and is granted it again.
func TestARevokedPrivilegeHoldsAllWorkAndEndsNone(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "revoke a privilege under load; another test drops a column")
	var role string
	a := newFaultyInstallation(t, func(c *config.Config) { role = loginAs(t, c) })
	testkit.Exec(t, a.store, `REVOKE UPDATE ON execution FROM `+role)
	a.load(t)
	a.held(t, "permission denied for table execution", "SQLSTATE 42501",
		"attune-executor doctor --as engine")
	testkit.Exec(t, a.store, `GRANT UPDATE ON execution TO `+role)
	a.mended(t)
}

// Executions wait behind a held slot when the fault begins, for longer than their queue
// allows. None of them times out, neither during the fault nor after it.
func TestAFaultDoesNotUseUpTheTimeInAQueue(t *testing.T) {
	b := setup(t)
	action := testkit.Action(t, b.store, "fault.one")
	testkit.Policy(t, b.store, action, 1)
	release := make(chan struct{})
	b.fake(t, func(c *testkit.FakeWorkerConfig) {
		c.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return testkit.Answer{}
		}
	})
	e := b.engine(t, listening)
	ids := b.request(t, action.Ref, 4, `{}`)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, b.store, `SELECT count(*) FROM execution_admission_entry`) == 3 &&
			testkit.StatusOf(t, b.store, ids[0]) == lifecycle.StatusRunning
	}, 20*time.Second, "one runs, three wait")

	swept := func(why string) {
		var since time.Time
		require.NoError(t, b.store.Pool().QueryRow(testkit.Context(t), `SELECT clock_timestamp()`).Scan(&since))
		testkit.Eventually(t, func() bool {
			return testkit.Count(t, b.store, `SELECT count(*) FROM engine_replica WHERE (loops->>'recovery')::timestamptz > $1::timestamptz + interval '1 second'`, since) == 1
		}, 30*time.Second, "%s", why)
	}
	testkit.Exec(t, b.store, `ALTER TABLE execution RENAME COLUMN worker_affinity TO worker_affinity_away`)
	late := testkit.Execution(t, b.store, action).ID
	wire := b.connect(t, "late")
	wire.Publisher().Publish(testkit.Context(t), []broker.Message{requestMessage(t, late, "late")})
	testkit.Eventually(t, func() bool {
		code, failing := readiness(t, e)
		return code != http.StatusOK && failing["installation"] != ""
	}, 30*time.Second)
	testkit.Exec(t, b.store, `UPDATE execution_admission_entry SET enqueued_at = now() - interval '1 day'`)
	swept("the search for expired executions runs during the fault")

	testkit.Exec(t, b.store, `ALTER TABLE execution RENAME COLUMN worker_affinity_away TO worker_affinity`)
	testkit.Eventually(t, func() bool { code, _ := readiness(t, e); return code == http.StatusOK }, 60*time.Second,
		"it is ready again")
	swept("and after it")
	close(release)
	b.untilStatus(t, lifecycle.StatusCompleted, append(ids, late)...)
	b.settled(t, 20*time.Second)
}

// A replica whose own login fails returns its deliveries after a minute, and another replica does all the work.
func TestAReplicaAtFaultLeavesItsWorkToAnother(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "wait until a replica returns its deliveries")
	var role string
	a := newFaultyInstallation(t, func(c *config.Config) { role = loginAs(t, c) })
	testkit.Exec(t, a.store, `REVOKE UPDATE ON execution FROM `+role)
	a.load(t)
	a.held(t, "permission denied for table execution")
	testkit.Eventually(t, func() bool {
		_, failing := readiness(t, a.engine)
		return strings.Contains(failing["consumer attune.execution.requests.queue"], "gave back its deliveries")
	}, 110*time.Second, "the deliveries return to the broker")
	a.bundle.engine(t)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, a.store, `SELECT count(*) FROM enforcement WHERE status = 'processed'`) == 2*a.events &&
			a.live(t) == 0
	}, 110*time.Second, "the other replica does everything")
	testkit.Exec(t, a.store, `GRANT UPDATE ON execution TO `+role)
	a.mended(t)
}
