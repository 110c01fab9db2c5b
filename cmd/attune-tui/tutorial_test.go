package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
)

// seedIncident writes the four groups of fifteen dead letters of the demo's incident.
const seedIncident = `
with target as (
	insert into worker (name, worker_type, worker_role, status, last_heartbeat) values ('demo-worker-1', 'local', 'action', 'active', now() + interval '1 hour') returning id
), failed as (
	insert into execution (action, action_ref, status, result)
	select a.id, a.ref, 'failed', '{"error": "Worker queue TTL expired"}' from action a, generate_series(1, 15)
	where a.ref in ('ops.print', 'ops.fax') returning id, action, action_ref
), repeated as (
	insert into execution (action, action_ref, status, original_execution, retry_count)
	select action, action_ref, 'completed', id, 1 from failed where action_ref = 'ops.fax'
)
insert into dead_letter (fingerprint, message_id, message_type, exchange, routing_key, queue, reason, body, execution, worker, action_ref)
select 'e' || n, 'e' || n, 'EventCreated', 'attune.events', 'event.created', 'mirror.events', 'expired', '{}'::bytea, null::bigint, null::bigint, null::text
from generate_series(1, 15) n
union all
select 'h' || f.id, 'h' || f.id, 'ExecutionRequested', 'attune.executions', 'execution.dispatch.worker.' || t.id,
	'worker.' || t.id || '.executions', 'poison', '{}'::bytea, f.id, t.id, f.action_ref from failed f, target t
union all
select 'b' || n, 'b' || n, null, 'attune.executions', 'execution.requested', 'attune.execution.requests.queue', 'poison', '<'::bytea, null, null, null
from generate_series(1, 15) n`

// frames are the steps of the tutorial: a key, and the lines that it shows.
var frames = regexp.MustCompile("(?s)\n### `([^`]+)`[^\n]*\n(.*?)```text\n(.*?)```")

// TestTheTutorialOfTriageByKeys presses the keys of the tutorial, and checks each line and the decisions.
func TestTheTutorialOfTriageByKeys(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial-triage.md"))
	require.NoError(t, err)
	steps := frames.FindAllStringSubmatch(string(page), -1)
	_, listed, _ := strings.Cut(string(page), "```text\n")
	listed, _, _ = strings.Cut(listed, "\n")
	var keys []string
	for _, step := range steps {
		keys = append(keys, step[1])
	}
	require.Equal(t, strings.Fields(listed), keys, "the keys at the top are those of the steps")
	require.LessOrEqual(t, len(keys), 10)

	database := testkit.Database(t)
	st := testkit.OpenStore(t, database)
	testkit.Action(t, st, "ops.print")
	testkit.Action(t, st, "ops.fax")
	testkit.Exec(t, st, seedIncident)
	state := t.TempDir()
	x := openTerminalIn(t,
		[]string{"HOME=/nonexistent", "XDG_STATE_HOME=" + state, "ATTUNE__DATABASE__URL=" + database, noServers[1]})
	x.shows(" RW ")
	for _, step := range steps {
		x.press(map[string]string{"esc": "Escape"}[step[1]] + strings.TrimPrefix(step[1], "esc"))
		for line := range strings.Lines(step[3]) {
			x.matches(line)
		}
		if step[1] == "R" || step[1] == "D" {
			x.shows(buttons)
		}
	}
	files, err := filepath.Glob(filepath.Join(state, "attune", "exports", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1, "the copy of the discarded messages")
	copied, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, 15, strings.Count(string(copied), `"body":"<"`), "each unreadable message is in it")
	decided := func(where string) int {
		return testkit.Count(t, st, "select count(*) from dead_letter where "+where)
	}
	require.Equal(t, 15, decided("decision = 'requeued' and queue = 'mirror.events'"))
	require.Equal(t, 15,
		decided("decision = 'requeued' and execution in (select id from execution where action_ref = 'ops.print')"))
	require.Equal(t, 15,
		decided("decision = 'discarded' and execution in (select id from execution where action_ref = 'ops.fax')"))
	require.Equal(t, 15, decided("decision = 'discarded' and queue = 'attune.execution.requests.queue'"))
	require.Equal(t, 15,
		testkit.Count(t, st, "select count(*) from execution where action_ref = 'ops.print' and retry_count = 1"))
}

// matches waits until a line of a page is on the screen. … stands for anything.
func (x *terminal) matches(line string) {
	x.t.Helper()
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSpace(line), "…") {
		var words []string
		for word := range strings.FieldsSeq(part) {
			words = append(words, regexp.QuoteMeta(word))
		}
		parts = append(parts, strings.Join(words, `\s+`))
	}
	pattern := regexp.MustCompile(strings.Join(parts, `[^\n]*`))
	testkit.Eventually(x.t, func() bool { return pattern.MatchString(x.call("capture-pane", "-p")) }, wait,
		"the screen shows %s", line)
}
