package sample_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/installation/sample"
	"github.com/attune-go/attune/lab/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// filled is an installation with old and new executions, one that waits with its parents, and events.
const filled = `
	SET search_path = attune, public;
	INSERT INTO identity (login, password_hash) VALUES ('ann', 'hash');
	INSERT INTO pack (ref, label, version) VALUES ('demo', 'Demo', '1.0.0');
	INSERT INTO action (ref, pack, pack_ref, label, entrypoint) SELECT 'demo.work', id, ref, 'Work', 'work.sh' FROM pack;
	INSERT INTO "trigger" (ref, pack, pack_ref, label) SELECT 'demo.tick', id, ref, 'Tick' FROM pack;
	INSERT INTO rule (ref, pack, pack_ref, label, action, action_ref, "trigger", trigger_ref, enabled)
	SELECT 'demo.rule', p.id, p.ref, 'Rule', a.id, a.ref, t.id, t.ref, true FROM pack p, action a, "trigger" t;
	INSERT INTO event ("trigger", trigger_ref, created) SELECT t.id, t.ref, now() - (101 - n) * interval '1 hour'
	FROM "trigger" t, generate_series(1, 100) n;
	INSERT INTO enforcement (rule, rule_ref, trigger_ref, event, status, config, payload) SELECT r.id, r.ref, r.trigger_ref, e.id, 'processed', '{}', '{}'
	FROM rule r, event e ORDER BY e.id;
	INSERT INTO execution (action, action_ref, enforcement, status) SELECT a.id, a.ref, f.id, 'completed'
	FROM action a, enforcement f ORDER BY f.id;
	UPDATE execution SET status = 'running' WHERE id = 1;
	INSERT INTO execution (action, action_ref, parent, status) SELECT action, action_ref, id, 'completed' FROM execution WHERE id = 1;
	INSERT INTO inquiry (execution, prompt) VALUES (1, 'Go on?'), (2, 'Old?');
	INSERT INTO execution_secret_value (entity_type, entity_id, json_path, source_kind, encrypted_value, encryption_key_hash)
	VALUES ('execution', 1, '$.a', 'parameter', '"sealed"', 'h'), ('execution', 2, '$.a', 'parameter', '"sealed"', 'h');
	INSERT INTO key (ref, owner_type, name, encrypted, value) VALUES ('system.token', 'system', 'token', false, '"clear"')`

// The copy has all definitions, the newest rows, all live executions with the rows that they refer to, and no
// secret.
func TestTheSampleHasTheNewestRowsAndTheirReferences(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	cfg := sample.Config{
		From: testkit.Installation(t, installation.Newest), To: testkit.EmptyDatabase(t), Schema: "attune", Newest: 10,
		Live: 100, Progress: func(line string) { t.Log(line) },
	}
	from, err := pgx.Connect(ctx, cfg.From)
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close(ctx)) }()
	_, err = from.Exec(ctx, filled, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	report, err := sample.Copy(ctx, cfg)
	require.NoError(t, err)
	require.Empty(t, report.LeftOut)
	require.Empty(t, report.LiveLeft)
	require.ElementsMatch(t, []string{"artifact_version", "integration_token", "key", "webhook_event_log"}, report.NotCopied)

	to, err := pgx.Connect(ctx, cfg.To)
	require.NoError(t, err)
	defer func() { require.NoError(t, to.Close(ctx)) }()
	for what, want := range map[string]struct {
		sql  string
		want int64
	}{
		"ten newest, the running one":         {"SELECT count(*) FROM attune.execution", 11},
		"the running one":                     {"SELECT count(*) FROM attune.execution WHERE id = 1 AND status = 'running'", 1},
		"its enforcement, and the ten newest": {"SELECT count(*) FROM attune.enforcement", 11},
		"its event":                           {"SELECT count(*) FROM attune.event WHERE id = 1", 1},
		"its inquiry":                         {"SELECT sum(execution) FROM attune.inquiry", 1},
		"its sealed values":                   {"SELECT sum(entity_id) FROM attune.execution_secret_value", 1},
		"no password":                         {"SELECT count(*) FROM attune.identity WHERE password_hash IS NULL", 1},
		"no keys":                             {"SELECT count(*) FROM attune.key", 0},
		"the next id":                         {"SELECT nextval('attune.execution_id_seq')", 102},
	} {
		var got int64
		require.NoError(t, to.QueryRow(ctx, want.sql).Scan(&got), what)
		require.Equal(t, want.want, got, what)
	}
}

// An older installation is copied as it is.
func TestEveryShapeIsCopied(t *testing.T) {
	t.Parallel()
	for _, shape := range testkit.Some(t, installation.Shapes(), 2) {
		t.Run(shape.Date, func(t *testing.T) {
			t.Parallel()
			_, err := sample.Copy(testkit.Context(t), sample.Config{
				From: testkit.Installation(t, shape), To: testkit.EmptyDatabase(t), Schema: "attune",
				Newest: 10, Live: 10, Progress: func(string) {},
			})
			require.NoError(t, err)
		})
	}
}
