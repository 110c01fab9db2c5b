package engine_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/lab/testkit"
)

// scenario is one of the published scenarios of worker availability, on the adopted
// database of an installation with its workers. The times are short but in the long
// form, where they are the default ones.
type scenario struct {
	*bundle

	t      *testing.T
	change []func(*config.Config)
}

// scenarios play the numbered lines of the document; the key is the line. Each asserts the text after the colon, or
// the deliberate difference of this engine.
var scenarios = map[string]func(s *scenario){
	"Worker stops mid-execution: Should timeout and fail":                     (*scenario).stopsMidExecution,
	"Worker never picks up task: Should timeout after 5 minutes":              (*scenario).neverPicksUp,
	`All workers down: Should immediately fail with "no workers available"`:   (*scenario).allWorkersDown,
	"Worker stops gracefully: Should mark inactive and not receive new tasks": (*scenario).stopsGracefully,
	"Message expires in queue: Should be moved to DLQ and execution failed":   (*scenario).messageExpires,
}

func TestThePublishedScenariosLineByLine(t *testing.T) {
	t.Parallel()
	numbered := regexp.MustCompile(`(?m)^  \d\. (.*)$`).FindAllStringSubmatch(section(t, availabilityDocument,
		"Test Scenarios"), -1)
	var named []string
	for _, line := range numbered {
		named = append(named, line[1])
	}
	require.ElementsMatch(t, named, slices.Collect(maps.Keys(scenarios)), "every scenario of the document is played")
	for name, play := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scenario{bundle: setupOn(t, testkit.AdoptedDatabase(t)), t: t}
			if !testkit.Slow() {
				s.change = append(s.change, quickSilence)
			}
			play(s)
			require.Zero(t, s.stale(), "no execution stays scheduled for longer than it may")
		})
	}
}

// stale counts the rows of the published statement: executions that have been scheduled for too long.
func (s *scenario) stale() (count int) {
	s.t.Helper()
	cutoff := time.Now().Add(-6 * time.Minute) // the timeout and the pause between two looks
	rows, err := s.store.Pool().Query(testkit.Context(s.t), section(s.t, availabilityDocument, "Stale executions"),
		cutoff)
	require.NoError(s.t, err)
	defer rows.Close()
	for rows.Next() {
		count++
	}
	require.NoError(s.t, rows.Err())
	return count
}

// serve starts a replica.
func (s *scenario) serve(change ...func(*config.Config)) {
	s.t.Helper()
	s.engine(s.t, append(slices.Clone(s.change), change...)...)
}

// busy starts a worker that starts executions and does not complete them.
func (s *scenario) busy(name string) *testkit.FakeWorker {
	s.t.Helper()
	return s.fake(s.t, func(f *testkit.FakeWorkerConfig) {
		f.Name = name
		f.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			<-ctx.Done()
			return testkit.Answer{Never: true}
		}
	})
}

// request asks for one execution of core.echo.
func (s *scenario) one() int64 { return s.request(s.t, "core.echo", 1, `{"message": "test"}`)[0] }

// result is the result of an execution that has ended with a status.
func (s *scenario) result(status lifecycle.Status, id int64, within time.Duration) (result map[string]any) {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool { return testkit.StatusOf(s.t, s.store, id).Terminal() }, within)
	require.Equal(s.t, status, testkit.StatusOf(s.t, s.store, id))
	var raw []byte
	require.NoError(s.t,
		s.store.Pool().QueryRow(testkit.Context(s.t), `SELECT result FROM execution WHERE id = $1`, id).Scan(&raw))
	require.NoError(s.t, json.Unmarshal(raw, &result))
	return result
}

// Document: "Should timeout and fail". Here: `abandoned` by default, as the published
// program has it, and `failed` where the setting says so.
func (s *scenario) stopsMidExecution() {
	for setting, status := range map[string]lifecycle.Status{
		"abandon": lifecycle.StatusAbandoned,
		"fail":    lifecycle.StatusFailed,
	} {
		s.t.Run(setting, func(t *testing.T) {
			t.Parallel()
			s := &scenario{bundle: setupOn(t, testkit.AdoptedDatabase(t)), t: t, change: s.change}
			s.serve(func(c *config.Config) { c.Executor.LostRunning = setting })
			worker := s.busy("worker-shell")
			id := s.one()
			s.untilStatus(t, lifecycle.StatusRunning, id)
			worker.Kill()
			result := s.result(status, id, 4*time.Minute)
			require.Equal(t, "Execution abandoned because its worker became unavailable while running", result["error"])
			require.Equal(t, "The worker stopped sending heartbeats while it ran the execution", result["message"])
			require.Zero(t, testkit.Count(t, s.store, `SELECT count(*) FROM execution WHERE original_execution = $1`,
				id), "a running execution is not retried")
			require.Zero(t, s.stale())
		})
	}
}

// Document: "Should timeout after 5 minutes". Here: the same, with the published message; an execution that never
// started is retried as a new one.
func (s *scenario) neverPicksUp() {
	seconds := "300"
	if !testkit.Slow() {
		seconds = "1"
		s.change = append(s.change, func(c *config.Config) { c.Executor.ScheduledTimeout = time.Second })
	}
	s.serve()
	s.fake(s.t, func(f *testkit.FakeWorkerConfig) { f.Gate = make(chan struct{}) })
	id := s.one()
	result := s.result(lifecycle.StatusFailed, id, 7*time.Minute)
	require.Regexp(s.t, `^Execution timeout: worker did not pick up task within `+seconds+
		` seconds \(scheduled for \d+ seconds\)$`, result["error"])
	require.Equal(s.t, "execution_timeout_monitor", result["failed_by"])
	testkit.Eventually(s.t, func() bool {
		return testkit.Count(s.t, s.store,
			`SELECT count(*) FROM execution WHERE original_execution = $1 AND retry_count = 1`, id) == 1
	}, 30*time.Second, "it is repeated, because it never began")
}

// Document: "Should immediately fail". Here: the same, with no worker at all and with
// workers that are all stopped.
func (s *scenario) allWorkersDown() {
	s.serve()
	require.Equal(s.t, "no workers available", s.result(lifecycle.StatusFailed, s.one(), 20*time.Second)["error"])
	require.NoError(s.t, s.fake(s.t, nil).Stop(testkit.Context(s.t)))
	result := s.result(lifecycle.StatusFailed, s.one(), 20*time.Second)
	require.Equal(s.t, "no workers available", result["error"])
	require.Equal(s.t, "execution_scheduler", result["failed_by"])
}

// Document: "Should mark inactive and not receive new tasks". Here: the same, with the statement of the document;
// its running executions continue, and new tasks go to another worker.
func (s *scenario) stopsGracefully() {
	s.serve()
	finish := make(chan struct{})
	leaver := s.fake(s.t, func(f *testkit.FakeWorkerConfig) {
		f.Behave = func(ctx context.Context, _ testkit.Job) testkit.Answer {
			select {
			case <-ctx.Done():
			case <-finish:
			}
			return testkit.Answer{}
		}
	})
	running := s.one()
	s.untilStatus(s.t, lifecycle.StatusRunning, running)
	s.fake(s.t, nil)
	testkit.Exec(s.t, s.store, section(s.t, availabilityDocument, "Graceful Worker Shutdown"), leaver.ID)
	require.Equal(s.t, 1,
		testkit.Count(s.t, s.store, `SELECT count(*) FROM worker WHERE id = $1 AND status = 'inactive'`, leaver.ID))
	s.untilStatus(s.t, lifecycle.StatusCompleted, s.request(s.t, "core.echo", 5, `{}`)...)
	require.Len(s.t, leaver.Runs(), 1, "nothing new")
	close(finish)
	s.untilStatus(s.t, lifecycle.StatusCompleted, running)
}

// Document: "Should be moved to DLQ and execution failed". Here: the same; the message
// is kept in the ledger, and the work, which never began, is repeated.
func (s *scenario) messageExpires() {
	ttl := 500 * time.Millisecond
	if testkit.Slow() {
		ttl = 4 * time.Minute // before the timeout of the monitor decides
	}
	stuck := s.withoutConsumer(s.t, "worker-stuck", ttl)
	s.serve()
	id := s.one()
	result := s.result(lifecycle.StatusFailed, id, 7*time.Minute)
	require.Equal(s.t, "Worker queue TTL expired", result["error"])
	require.Equal(s.t, "dead_letter_handler", result["failed_by"])
	require.Equal(s.t, 1, testkit.Count(s.t, s.store, `SELECT count(*) FROM dead_letter
		WHERE execution = $1 AND worker = $2 AND reason = 'expired' AND decision = 'failed' AND jsonb_array_length(x_death) > 0`, id, stuck))
}

// The published integration test: a worker crashes with a scheduled execution; 310 s
// later its status is failed and result.error contains "timeout". Here it takes 90 s.
func TestThePublishedIntegrationTest(t *testing.T) {
	s := &scenario{bundle: setupOn(t, testkit.AdoptedDatabase(t)), t: t}
	if !testkit.Slow() {
		s.change = append(s.change, quickSilence)
	}
	s.serve()
	worker := s.fake(t, func(f *testkit.FakeWorkerConfig) { f.Gate = make(chan struct{}) })
	execution := s.one()
	s.untilStatus(t, lifecycle.StatusScheduled, execution)
	worker.Kill()
	result := s.result(lifecycle.StatusFailed, execution, 310*time.Second)
	require.Contains(t, result["error"], "timeout")
	require.Equal(t, "Worker queue TTL expired: heartbeat timeout before the worker started the execution",
		result["error"])

	// With another worker the work is done there, as a new execution.
	second := s.fake(t, func(f *testkit.FakeWorkerConfig) { f.Gate = make(chan struct{}) })
	moved := s.one()
	s.untilStatus(t, lifecycle.StatusScheduled, moved)
	s.fake(t, nil)
	second.Kill()
	s.result(lifecycle.StatusFailed, moved, 310*time.Second)
	testkit.Eventually(t, func() bool {
		return testkit.Count(t, s.store,
			`SELECT count(*) FROM execution WHERE original_execution = $1 AND status = 'completed'`, moved) == 1
	}, 60*time.Second)
}
