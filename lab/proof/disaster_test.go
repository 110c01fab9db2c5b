package proof

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/lab/devstack"
	"github.com/attune-go/attune/lab/testkit"
)

// disaster is a stage with two replicas and two workers that loses its database's last hour, its broker, or both.
type disaster struct {
	*stage

	replicas []*process
	stack    *devstack.Stack // nil on shared servers
}

func newDisaster(t *testing.T, stack *devstack.Stack) *disaster {
	t.Helper()
	d := &disaster{stack: stack}
	if stack == nil {
		d.stage = newStage(t)
	} else {
		d.stage = newStageAt(t, servers{
			Database: testkit.Database(t), AMQP: stack.AMQPURL(),
			Management: stack.ManagementURL(),
		})
	}
	d.runLog.longest = 200 * time.Millisecond
	d.worker("w1")
	d.worker("w2")
	d.serveBoth()
	return d
}

func (d *disaster) serveBoth() {
	d.replicas = nil
	for range 2 {
		d.replicas = append(d.replicas, d.serve(soon()...))
	}
}

// loseBroker replaces the broker by one without data.
func (d *disaster) loseBroker() {
	d.t.Helper()
	ctx := testkit.Context(d.t)
	require.NoError(d.t, d.stack.KillBroker(ctx))
	require.NoError(d.t, os.RemoveAll(filepath.Join(d.stack.Dir(), "rabbitmq", "mnesia")))
	require.NoError(d.t, d.stack.StartBroker(ctx))
}

// backup writes a backup of the database, as docs/disaster-recovery.md does.
func (d *disaster) backup() (file string) {
	d.t.Helper()
	file = filepath.Join(d.t.TempDir(), "attune.dump")
	postgresTool(d.t, "pg_dump", "-Fc", "-f", file, d.Database)
	return file
}

// postgresTool runs one of PostgreSQL's client programs.
func postgresTool(t testing.TB, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // fails only for a malformed pattern
		require.NotEmpty(t, found, "%s is not installed", name)
		path = slices.Max(found)
	}
	out, err := exec.CommandContext(testkit.Context(t), path, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

// restore puts the backup in the place of the database, with the statements of docs/disaster-recovery.md.
func (d *disaster) restore(file string) {
	d.t.Helper()
	at, err := url.Parse(d.Database)
	require.NoError(d.t, err)
	name := strings.TrimPrefix(at.Path, "/")
	restored := *at
	restored.Path = at.Path + "_restored"
	admin := *at
	admin.Path = "/postgres"
	run := func(where url.URL, sql string) {
		ctx := context.WithoutCancel(testkit.Context(d.t)) // also in the cleanup
		conn, err := pgx.Connect(ctx, where.String())
		require.NoError(d.t, err)
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, sql)
		require.NoError(d.t, err, sql)
	}
	run(admin, "CREATE DATABASE "+name+"_restored TEMPLATE template0")
	postgresTool(d.t, "pg_restore", "-d", restored.String(), file)
	run(restored, recoverySQL(d.t, "setval"))
	for statement := range strings.SplitSeq(recoverySQL(d.t, "RENAME"), ";") {
		run(admin, regexp.MustCompile(`\battune`).ReplaceAllLiteralString(statement, name))
	}
	d.store.Pool().Reset() // the checks do not repeat their statements
	d.t.Cleanup(func() { run(admin, "DROP DATABASE "+name+"_lost") })
}

// recoverySQL returns the SQL example with a word from docs/disaster-recovery.md.
func recoverySQL(t testing.TB, word string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/disaster-recovery.md")
	require.NoError(t, err)
	for _, example := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(example[1], word) {
			return example[1]
		}
	}
	require.Fail(t, "docs/disaster-recovery.md has no SQL with "+word)
	return ""
}

// late is a worker that registers after the backup, and so is unknown after the restore.
func (d *disaster) late() *worker.Worker {
	return d.startWorkerWith(worker.Config{
		Name: "late", MaxConcurrent: 20, HeartbeatInterval: 200 * time.Millisecond,
		Actions: worker.Actions{actFree: d.runLog.run, actLimited: d.runLog.run, actFlaky: d.runLog.flaky},
	})
}

// started copies the recorded starts.
func (d *disaster) started() map[int64]int {
	d.runLog.mu.Lock()
	defer d.runLog.mu.Unlock()
	counts := map[int64]int{}
	for id, attempts := range d.runLog.starts {
		counts[id] = len(attempts)
	}
	return counts
}

// requireEachAttemptOnce checks that no attempt of a known execution started twice since before.
func (d *disaster) requireEachAttemptOnce(known []int64, before map[int64]int) {
	d.t.Helper()
	d.runLog.mu.Lock()
	defer d.runLog.mu.Unlock()
	for _, id := range known {
		since := slices.Sorted(slices.Values(d.runLog.starts[id][before[id]:]))
		require.Equal(d.t, slices.Compact(slices.Clone(since)), since, "S2: the starts of execution %d", id)
	}
}

// requireKept checks that all known executions have ended, and how their last attempts have: one that no worker
// started in time failed, and was retried.
func (d *disaster) requireKept(known []int64, statuses ...lifecycle.Status) {
	d.t.Helper()
	require.NotEmpty(d.t, known)
	require.Len(d.t, d.ids(`SELECT id FROM execution WHERE id = ANY ($1)`, known), len(known), "no execution is lost")
	for _, id := range d.ids(`SELECT id FROM execution WHERE id = ANY ($1) AND action_ref <> $2`, known, actFlaky) {
		last := d.ids(`SELECT max(r.id) FROM execution e JOIN execution r ON coalesce(r.original_execution, r.id) = coalesce(e.original_execution, e.id)
			WHERE e.id = $1`, id)[0]
		require.Contains(d.t, statuses, testkit.StatusOf(d.t, d.store, last), "execution %d, attempt %d", id, last)
	}
}

// The database is restored from a backup while the broker keeps newer messages and the workers continue. Every
// execution in the backup ends, each attempt starts once, messages about unknown executions become dead letters,
// and new executions do not get the ids of lost ones.
func TestTheDatabaseIsRestored(t *testing.T) {
	newDisaster(t, nil).loseAnHour(func() {})
}

// F4, L5: the broker is replaced by an empty one under load. Every execution completes.
func TestTheBrokerIsReplacedByAnEmptyOne(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "replace a broker of the test's own under load")
	d := newDisaster(t, testkit.NewStack(t))
	lost := 0
	d.load(func() bool {
		if lost == 0 {
			d.loseBroker()
		}
		lost++
		return lost > 20
	})
	d.over()
	d.requireKept(d.asked, lifecycle.StatusCompleted)
	d.requireEachAttemptOnce(d.asked, nil)
	require.Zero(t, d.count(`SELECT count(*) FROM dead_letter`))
	for _, replica := range d.replicas {
		require.Zero(t, replica.stop(t))
	}
}

// The database is restored from a backup, and the broker is replaced by an empty one.
func TestDatabaseAndBrokerAreLost(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "lose both servers of the test's own")
	d := newDisaster(t, testkit.NewStack(t))
	d.loseAnHour(d.loseBroker)
}

// loseAnHour takes a backup under load, continues, and restores it. Meanwhile also happens.
func (d *disaster) loseAnHour(also func()) {
	t := d.t
	var backup string
	d.load(func() bool {
		if backup == "" {
			gate := make(chan struct{})
			d.gate(gate)
			d.request(actLimited, 1) // it is open in the backup, however long that takes
			backup = d.backup()
			close(gate)
		}
		return true
	})
	late := d.late()
	lost := d.load(func() bool { return true }) // the lost hour
	for _, replica := range d.replicas {
		require.Zero(t, replica.stop(t))
	}
	d.flaky = nil
	lost = append(lost, d.request(actFree, 300)...) // their messages wait in the broker
	also()
	d.restore(backup)
	before := d.started()
	known := d.ids(`SELECT id FROM execution`)
	require.NotEmpty(t, d.ids(`SELECT id FROM execution WHERE finished_status IS NULL`), "the backup has open executions")
	require.NotSubset(t, known, lost)

	d.serveBoth()
	<-late.Done() // its row is gone; the service manager starts it again
	d.late()
	newest := d.load(func() bool { return true })
	d.over()
	d.requireKept(known, lifecycle.StatusCompleted, lifecycle.StatusAbandoned)
	d.requireEachAttemptOnce(append(known, newest...), before)
	require.Greater(t, slices.Min(newest), slices.Max(lost), "no id is given twice")
	require.Zero(t, d.count(`SELECT count(*) FROM dead_letter l WHERE EXISTS (SELECT FROM execution e WHERE e.id = l.execution)`),
		"%s", lazily(func() string { return d.deadLetters("true") }))
	if d.stack == nil {
		testkit.Eventually(t, func() bool {
			return d.count(`SELECT count(*) FROM dead_letter WHERE execution = ANY ($1)`, lost) > 0
		}, 30*time.Second, "messages about unknown executions are dead letters")
	}
	for _, replica := range d.replicas {
		require.Zero(t, replica.stop(t))
	}
	t.Logf("%d executions in the backup: %s", len(known),
		d.summary(`SELECT status::text AS what FROM execution WHERE id <= `+fmt.Sprint(slices.Max(known))))
	t.Logf("dead letters: %s", d.summary(`SELECT message_type || ' ' || reason AS what FROM dead_letter`))
}
