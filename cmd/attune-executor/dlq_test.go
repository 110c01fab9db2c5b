package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// The table of dead letters fits the terminal with any names.
func TestATableOfDeadLettersFitsTheTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("very.long-name", 9)
	for name, entry := range map[string]monitor.LedgerEntry{
		"short": {
			ID: 7, What: "dispatch", Reason: "expired", Decision: "failed", ActionRef: "core.echo",
			WorkerName: "w1",
		},
		"long": {
			ID: 123_456_789, What: "completed", Reason: "delivery_limit", Decision: "discarded", ActionRef: long,
			WorkerName: long, Execution: new(int64(987_654_321)),
		},
		"worker": {
			ID: 7, What: "dispatch", Reason: "expired", Decision: "failed", ActionRef: "core.echo",
			WorkerName: long,
		},
		"action": {ID: 7, What: "dispatch", Reason: "expired", Decision: "failed", ActionRef: long, WorkerName: "w1"},
		"foul": {
			ID: 7, What: "dispatch", Reason: "expired\x1b[2J", Decision: "failed",
			ActionRef: "\u202eevil\u009b2J", WorkerName: "a\nb\tc",
		},
	} {
		list := &deadLettersView{LedgerPage: &monitor.LedgerPage{List: []monitor.LedgerEntry{entry}}}
		var out bytes.Buffer
		a := &app{output: "table"}
		cmd := newDeadLettersCommand(a)
		cmd.SetOut(&out)
		require.NoError(t, a.write(cmd, list, func(w *page) { deadLettersPage(w, list) }))
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), tableWidth, "%s: %s", name, line)
		}
		require.NotContains(t, out.String(), "\x1b", name)
		require.NotContains(t, out.String(), "\u202e", name)
	}
}

// No output format writes control sequences of terminals, and JSON and YAML keep the data.
func TestNoControlSequencesAreWritten(t *testing.T) {
	t.Parallel()
	foul := "a\x1b[2J\u009b2J\x7f\u202eb\u2066\u200b\U000e0041\r\x00é\nc"
	body := map[string]string{"body": foul, "key " + foul: "x", "lines": "a\nb"}
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	for _, format := range []string{"json", "yaml", "table"} {
		var out, notes bytes.Buffer
		a := &app{output: format, stderr: &notes}
		cmd := newDeadLettersCommand(a)
		cmd.SetOut(&out)
		require.NoError(t, a.write(cmd, body, func(w *page) {
			w.row(foul, "é")
			w.text(pretty(raw))
		}))
		a.notef("error: %s", foul)
		for _, r := range out.String() + notes.String() {
			require.False(t, phrase.Steers(r) && r != '\n', "%q as %s", r, format)
		}
		var back map[string]string
		switch format {
		case "json":
			require.NoError(t, json.Unmarshal(out.Bytes(), &back))
			require.Equal(t, body, back, "nothing is lost")
		case "yaml":
			require.NoError(t, yaml.Unmarshal(out.Bytes(), &back))
			require.Equal(t, body, back, "nothing is lost")
		}
	}
}

// An act needs a yes, or the word of its plan, and both need a terminal.
func TestAPlanIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		word     string
		terminal bool
		answer   string
		refused  string
	}{
		"few": {"", true, "y\n", ""}, "upper": {"", true, "Y\n", ""}, "no": {"", true, "n\n", "not y"},
		"silence": {"", true, "", "not y"},
		"many":    {act.Word(act.DiscardDeadLetter, 51), true, " discard 51 \n", ""},
		"a yes":   {act.Word(act.DiscardDeadLetter, 51), true, "y\n", "the answer is not discard 51"},
		"another": {"core.echo", true, "core.echo2\n", "not core.echo"}, "its name": {"core.echo", true, "core.echo", ""},
		"no answer": {act.Word(act.DiscardDeadLetter, 50), false, "y\n", "Discard 1 dead letter: --yes does it"},
	} {
		var out bytes.Buffer
		var w page
		planPage(&w, &act.Plan{Title: "Discard", Lines: act.TextLines{{Text: "T\x1b[2J"}}})
		err := newQuestion("Discard 1 dead letter", &w, c.word).confirm(strings.NewReader(c.answer), &out, c.terminal)
		require.NotContains(t, out.String(), "\x1b")
		if c.refused == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.refused, name)
		require.Equal(t, exitRefused, (&app{running: true}).exitCode(err), name)
	}
	require.False(t, interactive(strings.NewReader("")))
}

// `dlq take` fails if messages have left the queue since its plan, and its receipt counts them.
func TestATakeOfLostMessagesFails(t *testing.T) {
	vhost, database := testkit.VHost(t), testkit.Database(t)
	st := testkit.OpenStore(t, database)
	queue := "/api/queues/" + url.PathEscape(testkit.VHostName(t, vhost)) + "/" + monitor.DeadLetterQueue
	testkit.Manage(t, http.MethodPut, queue, map[string]any{"durable": true}, nil)
	environ := []string{
		"ATTUNE__MESSAGE_QUEUE__URL=" + vhost, "ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + testkit.ManagementURL(t),
		"ATTUNE__DATABASE__URL=" + database,
	}
	channel := testkit.Forger(t, vhost)
	for range 3 {
		message := amqp.Publishing{Body: []byte("x")}
		require.NoError(t, channel.Publish("", monitor.DeadLetterQueue, false, false, message))
	}
	var stdout, stderr bytes.Buffer
	run := func(args ...string) int {
		stdout.Reset()
		stderr.Reset()
		args = append([]string{"dlq", "take"}, args...)
		return execute(t.Context(), args, environ, strings.NewReader(""), &stdout, &stderr)
	}
	testkit.Eventually(t, func() bool {
		return run("--dry-run") == 0 && strings.Contains(stdout.String(), "3 messages are ready")
	}, testkit.TestTimeout)
	// The command has read the number of messages when it waits for the audit.
	tx, err := st.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `lock table operator_audit in access exclusive mode`)
	require.NoError(t, err)
	code := make(chan int)
	go func() { code <- run("--yes", "-o", "json") }()
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, st, `select count(*) from pg_locks where not granted
			and relation = 'operator_audit'::regclass`) == 1
	}, testkit.TestTimeout)
	_, err = channel.QueuePurge(monitor.DeadLetterQueue, false)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, exitFailed, <-code, stderr.String())
	var receipt triage.TakeReceipt
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &receipt), stdout.String())
	require.Equal(t, []int{3, 0, 3, 0}, []int{receipt.Planned, receipt.Taken, receipt.Absent, receipt.Left})
	require.Contains(t, receipt.Lost, "they are lost, unless a consumer took them")
	require.Contains(t, stderr.String(), "3 of 3 messages had left attune.dlx.queue before they were taken: they are lost")
}

// `dlq take` takes messages in parts, and lists the matching ones at the end.
func TestMessagesAreTakenByCommand(t *testing.T) {
	vhostURL, database := testkit.VHost(t), testkit.Database(t)
	st := testkit.OpenStore(t, database)
	vhost := url.PathEscape(testkit.VHostName(t, vhostURL))
	testkit.Manage(t, http.MethodPut, "/api/queues/"+vhost+"/"+monitor.DeadLetterQueue, map[string]any{"durable": true},
		nil)
	for i := range 3 {
		testkit.Manage(t, http.MethodPost, "/api/exchanges/"+vhost+"/amq.default/publish", map[string]any{
			"routing_key": monitor.DeadLetterQueue, "payload": "/xtb", "payload_encoding": "base64",
			"properties": map[string]any{
				"type": "EventCreated", "message_id": fmt.Sprint("m-", i),
				"headers": map[string]any{
					"x-death": []any{map[string]any{
						"queue":  "attune.events\x1b[2J",
						"reason": []string{"expired", "rejected", "rejected"}[i],
					}},
				},
			},
		}, nil)
	}
	environ := []string{
		"ATTUNE__MESSAGE_QUEUE__URL=" + vhostURL, "ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + testkit.ManagementURL(t),
		"ATTUNE__DATABASE__URL=" + database,
	}
	run := func(want int, args ...string) string {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"dlq", "take"}, args...), environ, strings.NewReader(""), &stdout,
			&stderr)
		require.Equal(t, want, code, stderr.String())
		return stdout.String() + stderr.String()
	}
	var text string
	testkit.Eventually(t,
		func() bool { text = run(0, "--dry-run"); return strings.Contains(text, "3 messages are") }, 20*time.Second)
	require.Contains(t, text, "the first 3 are taken")
	require.Contains(t, run(exitRefused), "Take 3 dead letters: --yes does it")
	require.Regexp(t,
		`^1 of 1 taken\. \(audit 1\)\n  1 new row, 0 known, 0 probes; attune.dlx.queue 3 → 2\n`,
		run(0, "--first", "1", "--yes"))
	var receipt triage.TakeReceipt
	require.NoError(t, json.Unmarshal([]byte(run(0, "--reason", "rejected", "--yes", "-o", "json")), &receipt))
	require.Equal(t, []int{2, 2, 2, 0}, []int{receipt.Planned, receipt.New, receipt.Matching, receipt.After})
	require.Equal(t, []int64{2, 3}, receipt.Matched)
	require.Equal(t, 3, testkit.Count(t, st, `select count(*) from dead_letter where decision is null`))
	require.Contains(t, run(exitFailed, "--queue", "nowhere"), "the broker has no such queue: nowhere")
	require.Contains(t, run(0, "--yes"), "0 of 0 taken")
}
