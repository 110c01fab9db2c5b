package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// crowded is a queue with 1,000 executions: 300 of tenant t7, 700 of others.
type crowded struct {
	t              *testing.T
	database, amqp string
	store          *store.Store
}

func crowd(t *testing.T) *crowded {
	t.Helper()
	c := &crowded{t: t, database: testkit.Database(t), amqp: testkit.VHost(t)}
	c.store = testkit.OpenStore(t, c.database)
	action := testkit.Action(t, c.store, "shop.bill")
	state := testkit.State(t, c.store, action, 1, func(s *testkit.StateRow) { s.Queued, s.Paused = 1000, true })
	testkit.Exec(t, c.store, `insert into execution (action, action_ref, config)
		select $1, 'shop.bill', jsonb_build_object('tenant', case when g % 10 < 3 then 't7' else 't' || g % 5 end, 'order', jsonb_build_object('n', g))
		from generate_series(1, 1000) g`, action.ID)
	testkit.Exec(t, c.store, `insert into execution_admission_entry (state_id, execution_id, status, queue_order)
		select $1, e.id, 'queued', e.id from execution e order by e.id`, state.ID)
	testkit.Exec(t, c.store, `update execution_admission_state set next_queue_order = 2000`)
	testkit.Exec(t, c.store,
		`insert into queue_stats (action_id, queue_length, active_count, max_concurrent) values ($1, 1000, 0, 1)`,
		action.ID)
	return c
}

func (c *crowded) run(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	environ := []string{"ATTUNE__DATABASE__URL=" + c.database, "ATTUNE__MESSAGE_QUEUE__URL=" + c.amqp}
	code = execute(testkit.Context(c.t), args, environ, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func (c *crowded) cancelled(tenant string) int {
	return testkit.Count(c.t, c.store,
		`select count(*) from execution where status = 'cancelled' and config ->> 'tenant' = $1`, tenant)
}

// A parameter selects 300 of 1,000 queued executions, which are cancelled and retried.
func TestExecutionsOfOneCustomerAreCancelled(t *testing.T) {
	c := crowd(t)
	code, out, errs := c.run("execution", "list", "--status", "requested", "-p", "tenant=T7", "--limit", "400")
	require.Zero(t, code, errs)
	require.Equal(t, 301, strings.Count(out, "\n"), "a line each and a header")

	code, out, errs = c.run("execution", "cancel", "-p", "tenant=t7", "--dry-run")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^300 +shop\.bill +requested +1 +1000$`, out)
	require.Contains(t, out, "300 executions to cancel")
	code, _, errs = c.run("execution", "cancel", "-p", "tenant=t7")
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "300 executions to cancel: --yes does it, --dry-run shows more")
	require.Zero(t, c.cancelled("t7"))

	code, out, errs = c.run("execution", "cancel", "--action", "shop.bill", "--status", "requested", "-p", "tenant=t7",
		"--reason", "gone", "--yes")
	require.Zero(t, code, errs)
	require.Regexp(t, `^300 executions cancelled\. \(audit \d+\)\n$`, out)
	require.Equal(t, 300, c.cancelled("t7"))
	require.Equal(t, 300, testkit.Count(t, c.store, `select count(*) from execution where status = 'cancelled'`))
	require.Equal(t, 700,
		testkit.Count(t, c.store, `select count(*) from execution_admission_entry where status = 'queued'`))
	require.Equal(t, 700, testkit.Count(t, c.store, `select queued_count from execution_admission_state`))

	code, out, errs = c.run("execution", "cancel", "-p", "tenant=t7", "--yes")
	require.Zero(t, code, errs)
	require.Equal(t, "0 executions to cancel\n", out)
	code, out, errs = c.run("execution", "retry", "--status", "cancelled", "-p", "tenant=t7", "--id", "1..20", "--yes")
	require.Zero(t, code, errs)
	require.Equal(t, 6, strings.Count(out, " repeats "))
	testkit.Invariants(t, c.store)
}

// A clear of one customer leaves the other executions in their queue.
func TestWaitingExecutionsOfOneCustomerAreCleared(t *testing.T) {
	c := crowd(t)
	code, out, errs := c.run("queue", "clear", "shop.bill", "-p", "tenant=t7", "--dry-run")
	require.Zero(t, code, errs)
	require.Contains(t, out, "Clear 300 executions of shop.bill")
	code, out, errs = c.run("queue", "clear", "shop.bill", "--param", "tenant=t7", "--id", "1..500", "--yes")
	require.Zero(t, code, errs)
	require.Contains(t, out, "150 of 150 cancelled.")
	require.Equal(t, 150, c.cancelled("t7"))
	require.Equal(t, 850,
		testkit.Count(t, c.store, `select count(*) from execution_admission_entry where status = 'queued'`))
	testkit.Invariants(t, c.store)
}

// Flags that select executions are checked before a server is contacted.
func TestSelectingFlagsAreChecked(t *testing.T) {
	t.Parallel()
	c := &crowded{t: t}
	for line, why := range map[string]string{
		"execution cancel":                         "cancel needs the id of an execution, or several, or flags that choose them, such as --param tenant=t7",
		"execution cancel 7 -p tenant=t7":          "takes ids or flags that choose executions, not both",
		"execution cancel -p tenant":               `parameter "tenant" has no name: write -p name=value`,
		"execution list -p a..b=1":                 "has no name",
		"execution retry --id 9..3":                `"9..3" is not a range of ids`,
		"execution retry -p db_password=x":         "may hold a secret, which is not searched",
		"execution retry 7 --dry-run":              "--dry-run goes with flags that choose executions",
		"execution cancel --status nonsense --yes": "use one of",
		"queue clear shop.bill --id x":             "not a range of ids",
	} {
		code, _, errs := c.run(strings.Fields(line)...)
		require.Equal(t, exitUsage, code, line)
		require.Contains(t, errs, why, line)
	}
}

// A parameter moves 300 of 1,000 waiting executions to the front, and --undo puts them back.
func TestExecutionsOfOneCustomerGoFirst(t *testing.T) {
	c := crowd(t)
	first := func() int { // of the 300 that are served first
		return testkit.Count(t, c.store, `select count(*) from (select execution_id from execution_admission_entry
			order by lane desc, queue_order limit 300) q join execution e on e.id = q.execution_id
			where e.config ->> 'tenant' = 't7'`)
	}
	code, out, errs := c.run("execution", "front", "-p", "tenant=t7", "--dry-run")
	require.Zero(t, code, errs)
	require.Contains(t, out, "300 executions to front")
	code, _, errs = c.run("execution", "front", "-p", "tenant=t7")
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "--yes does it")
	require.Equal(t, 90, first())

	code, out, errs = c.run("execution", "front", "-p", "tenant=t7", "--yes", "--reason", "they wait")
	require.Zero(t, code, errs)
	require.Equal(t, "300 of 300 moved to the front of their lane. (audit 1)\n"+
		"undo: `attune-executor execution front --undo 1`\n", out)
	require.Equal(t, 300, first())
	code, out, errs = c.run("execution", "front", "--undo", "1")
	require.Zero(t, code, errs)
	require.Contains(t, out, "300 of 300 moved back")
	require.Equal(t, 90, first())
	require.Equal(t, 1000, testkit.Count(t, c.store, `select count(*) from execution_admission_entry
		where queue_order = execution_id and id = execution_id`), "each has its place and its ticket")

	code, _, errs = c.run("execution", "lane", "--to", "high", "-p", "tenant=t7", "--yes")
	require.Zero(t, code, errs)
	require.Equal(t, 300, first())
	for _, args := range [][]string{
		{"front"}, {"lane", "3"}, {"lane", "--to", "top", "3"}, {"front", "--undo", "1", "3"}, {"front", "3", "--dry-run"},
	} {
		code, _, errs = c.run(append([]string{"execution"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
	}
	for _, args := range [][]string{{"front", "1000000"}, {"front", "--undo", "2"}} {
		code, _, errs = c.run(append([]string{"execution"}, args...)...)
		require.Equal(t, exitRefused, code, "%v: %s", args, errs)
	}
}
