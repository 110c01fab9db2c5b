package redrive

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// operatorProgram is an operator without a screen: it looks, plans and runs.
const operatorProgram = `package main

import (
	"context"
	"os"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/core/store"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: os.Args[1], Schema: os.Args[2]}, nil)
	check(err)
	desk := redrive.New(redrive.Config{
		Actor: "ann@desk", Source: "attune-tui", Broker: broker.Config{URL: os.Args[3]}, Spool: os.Args[4], Rate: 1000, Direct: true,
	}, st)
	order := redrive.Order{Do: os.Args[5], Op: os.Args[6]}
	if order.Do == redrive.DoRequeue || order.Do == redrive.DoDiscard {
		snap, err := desk.Snapshot(ctx, false)
		check(err)
		order.Letters = snap.Letters
	}
	plan, err := desk.Plan(ctx, order)
	check(err)
	if plan.Nothing != "" {
		panic(plan.Nothing)
	}
	_, err = desk.Run(ctx, plan, "", nil)
	check(err)
}
`

// wantOperator says that the program was asked for.
var wantOperator atomic.Bool

// buildOperator builds the program in the way in which it can be told where to die.
var buildOperator = sync.OnceValues(func() (string, error) {
	if !wantOperator.Load() {
		return "", os.ErrNotExist // nobody asked for it
	}
	dir, err := os.MkdirTemp("", "attune-redrive-*")
	if err != nil {
		return "", err
	}
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "operator")
	if err := os.WriteFile(source, []byte(operatorProgram), 0o600); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "crashpoints", "-o", program, source)
	if out, err := build.CombinedOutput(); err != nil {
		return "", &buildError{string(out), err}
	}
	return program, nil
})

type buildError struct {
	out string
	err error
}

func (e *buildError) Error() string { return e.err.Error() + ": " + e.out }

// dies runs the program until it dies at the point.
func (s *site) dies(point, do, op string) {
	s.t.Helper()
	wantOperator.Store(true)
	program, err := buildOperator()
	require.NoError(s.t, err)
	cmd := exec.CommandContext(s.ctx, program, s.url, testkit.Schema, s.amqp, s.folder, do, op)
	cmd.Env = append(os.Environ(), crashpoint.Variable+"="+point+":2")
	out, err := cmd.CombinedOutput()
	require.Error(s.t, err, "%s", out)
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(s.t, ok)
	require.True(s.t, status.Signaled() && status.Signal() == syscall.SIGKILL, "%s: %s", point, out)
	testkit.Eventually(s.t, func() bool {
		who, err := Running(s.ctx, s.store.Queries, s.Queue())
		require.NoError(s.t, err)
		return who == ""
	}, 20*time.Second, "the server notices that whoever held the lock is dead")
}

// requested lists which executions have a request in the queue of the scheduler,
// each once.
func (s *site) requested() map[int64]int {
	s.t.Helper()
	found := map[int64]int{}
	for _, d := range s.drain(requests) {
		e, err := message.Decode[message.ExecutionRequested](d.Body)
		require.NoError(s.t, err)
		found[e.Payload.ExecutionID]++
	}
	return found
}

// The process dies at the second of three letters, at each moment of the table in the
// documentation of the package. Whatever it was, the same again leaves every
// execution requested, with at least one message, reset once, and no letter.
func TestARequeueThatDiesLosesNothing(t *testing.T) {
	t.Parallel()
	for i, point := range crashpoint.Redrive() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			ids := s.expired(3)
			s.letters(ids...)
			s.dies(point, DoRequeue, "")

			// What the process leaves: the first is done, the third untouched.
			reset, letters, sent := 2, 2, 1
			switch i {
			case 0: // spooled
				reset = 1
			case 1: // committed
			case 2, 3: // published, confirmed
				sent = 2
			default: // acknowledged
				sent, letters = 2, 1
			}
			s.becomes(message.QueueDeadLetter, letters)
			require.Equal(t, reset, s.count(`select count(*) from execution where status = 'requested'`))
			require.Equal(t, reset, s.count(`select count(*) from audit_event where event_type like 'dlq.%'`))
			s.becomes(requests, sent)
			before := s.requested()

			// The same again.
			r := s.run(Order{Do: DoRequeue, Letters: s.snapshot().Letters})
			require.Equal(t, letters, r.Done)
			require.Equal(t, 0, r.After)
			require.Equal(t, 3, s.count(`select count(*) from execution where status = 'requested' and retry_reason = 'manual_retry'`))
			require.Equal(t, 3, s.count(`select count(distinct resource_id) from audit_event where event_type like 'dlq.%'`))
			require.Equal(t, 3, s.count(`select count(*) from audit_event where event_type like 'dlq.%'`), "each was reset once")
			total := 0
			for id, n := range s.requested() {
				before[id] += n
			}
			for _, id := range ids {
				require.Positive(t, before[id], "execution %d has a request", id)
				total += before[id]
			}
			require.LessOrEqual(t, total, 4, "only what was in hand may be there twice")
		})
	}
}

// Once a scheduler has claimed what was requested, the letter that is left is stale.
func TestALetterThatIsLeftAfterTheConfirmIsStale(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(2)
	s.letters(ids...)
	s.dies("redrive:confirmed", DoRequeue, "")
	s.becomes(message.QueueDeadLetter, 1)
	testkit.Exec(t, s.store, `update execution set status = 'scheduled', updated = now() + interval '1 second'`)
	letters := s.snapshot().Letters
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: letters})
	require.NoError(t, err)
	require.Contains(t, p.Nothing, Stale)
	r := s.run(Order{Do: DoDiscard, Letters: letters})
	require.Equal(t, []int{1, 0}, []int{r.Done, r.After})
}

func TestADrainAndAnUndoThatDieLoseNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(150)...)
	s.dies("redrive:drain-spooled", DoPurge, "")
	s.becomes(message.QueueDeadLetter, 50) // the first batch has left, the second is back
	all, err := s.Spool()
	require.NoError(t, err)
	require.Len(t, all[0].Letters, 150, "a copy was safe before anything left")

	s.dies("redrive:undone", DoUndo, all[0].Op)
	s.becomes(message.QueueDeadLetter, 52)
	r := s.run(Order{Do: DoUndo, Op: all[0].Op})
	require.Equal(t, 149, r.Done)
	seen := map[string]int{}
	for _, d := range s.drain(message.QueueDeadLetter) {
		seen[d.MessageId]++
	}
	require.Len(t, seen, 150, "every letter is there")
}
