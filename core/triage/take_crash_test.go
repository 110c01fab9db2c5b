package triage_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/crashpoint"
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/triage"
	"github.com/attune-go/attune/lab/testkit"
)

// operatorProgram acts on dead letters like a command.
const operatorProgram = `package main

import (
	"context"
	"log/slog"
	"os"
	"strconv"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
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
	link := broker.New(broker.Config{URL: os.Args[3]}, slog.New(slog.DiscardHandler), broker.NewMetrics(nil))
	check(link.Start(ctx))
	operator := triage.New(triage.Config{Actor: "ann@desk"}, st, nil).With(link)
	var ids []int64
	for _, text := range os.Args[5:] {
		id, err := strconv.ParseInt(text, 10, 64)
		check(err)
		ids = append(ids, id)
	}
	switch os.Args[4] {
	case "take":
		plan, err := operator.PlanTake(ctx, triage.TakeRequest{})
		check(err)
		_, err = operator.Take(ctx, plan)
		check(err)
	case "requeue", "send", "return", "discard":
		for _, id := range ids {
			switch os.Args[4] {
			case "requeue":
				_, err = operator.Requeue(ctx, id, true, "")
			case "send":
				_, err = operator.SendDeadLetter(ctx, id, "", "parked", "")
			case "return":
				_, err = operator.ReturnDeadLetter(ctx, id, "")
			case "discard":
				_, err = operator.Discard(ctx, id, "")
			}
			check(err)
		}
	case "discard-many", "reopen":
		plan, planErr := operator.PlanDiscardOf(ctx, ids)
		check(planErr)
		if _, err = operator.DiscardMany(ctx, plan); err == nil {
			_, err = operator.Reopen(ctx, ids, "")
		}
	}
	check(err)
}
`

// operators builds the program with crash points.
func operators(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	program = filepath.Join(dir, "operator")
	require.NoError(t, os.WriteFile(source, []byte(operatorProgram), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-tags", "crashpoints", "-o",
		program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// dies runs the program until it dies at the nth reach of the point.
func (m *brokered) dies(program, point string, nth int, do string, ids ...int64) {
	m.t.Helper()
	args := []string{m.store.Pool().Config().ConnString(), testkit.Schema, m.amqp, do}
	for _, id := range ids {
		args = append(args, strconv.FormatInt(id, 10))
	}
	cmd := exec.CommandContext(m.t.Context(), program, args...)
	cmd.Env = append(os.Environ(), crashpoint.Variable+"="+point+":"+strconv.Itoa(nth))
	out, err := cmd.CombinedOutput()
	require.Error(m.t, err, "%s", out)
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(m.t, ok)
	require.True(m.t, status.Signaled() && status.Signal() == syscall.SIGKILL, "%s: %s", point, out)
	testkit.Eventually(m.t, func() bool { // the server notices the end of the holder
		lock, err := m.store.LockSession(m.t.Context(), deadletter.LockName(message.QueueDeadLetter), "test")
		if err == nil {
			lock.Release(m.t.Context())
		}
		return err == nil
	}, 20*time.Second, "the lock is free")
}

// A take is killed at each point of its second page. No message is lost or stored twice, and the next take continues.
// A dead letter is a row, or in the queue, or both if its acknowledgement was not sent.
func TestAKilledTakeLosesNothing(t *testing.T) {
	t.Parallel()
	program := operators(t)
	const deadLetters, page = 170, triage.TakePrefetch
	for _, point := range crashpoint.Takes() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			m := newBrokered(t)
			m.fill(message.QueueDeadLetter, deadLetters)
			m.dies(program, point, 2, "take")
			rows := testkit.Count(t, m.store, `select count(*) from dead_letter`)
			audited := testkit.Count(t, m.store,
				`select (request -> 'receipt' ->> 'taken')::int from operator_audit where action = 'dead_letter.take'`)
			require.Equal(t, rows, audited, "the counts are of one commit with the rows")
			var there int
			testkit.Eventually(t, func() bool {
				q, err := m.plain.QueueDeclarePassive(message.QueueDeadLetter, true, false, false, false, nil)
				require.NoError(t, err)
				there = q.Messages
				return q.Consumers == 0 && there >= deadLetters-rows
			}, 20*time.Second, "the broker has noticed the death and requeued the unacknowledged messages")
			require.LessOrEqual(t, there, deadLetters-rows+page)
			require.Equal(t, 1,
				testkit.Count(t, m.store, `select count(*) from operator_audit where outcome = 'running'`))

			r := m.take(triage.TakeRequest{})
			require.Equal(t, []int{deadLetters - rows, there - (deadLetters - rows), 0}, []int{r.New, r.Known, r.After})
			require.Equal(t, deadLetters, m.waiting())
			require.Equal(t, deadLetters, testkit.Count(t, m.store,
				`select count(distinct message_id) from dead_letter`))
		})
	}
}

// Each action is killed at each point of the second of three rows: the decision, its audit row and its message are
// stored together or not at all.
func TestAKilledActionOnDeadLettersIsAtomic(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "kill each action on dead letters; another test kills a take")
	program := operators(t)
	for do, decision := range map[string]string{
		"requeue": "requeued", "send": "sent", "return": "put_back", "discard": "discarded",
		"discard-many": "discarded", "reopen": "",
	} {
		for _, point := range crashpoint.Triage() {
			t.Run(do+" "+strings.TrimPrefix(point, "triage:"), func(t *testing.T) {
				t.Parallel()
				m := newBrokered(t)
				action := testkit.Action(t, m.store, "pk.do")
				for i := range 3 {
					e := testkit.Execution(t, m.store, action)
					testkit.Exec(t, m.store, `update execution set status = 'failed' where id = $1`, e.ID)
					require.NoError(t, m.plain.Publish("", message.QueueDeadLetter, false, false,
						deadDispatch(t, e.ID, "m"+strconv.Itoa(i))))
				}
				m.holds(message.QueueDeadLetter, 3)
				m.take(triage.TakeRequest{})
				before := testkit.Count(t, m.store, `select count(*) from operator_audit`)
				ids := m.ids()
				nth, done := 2, 1 // of three transactions
				switch do {
				case "discard-many":
					nth, done = 1, 0 // of one, for all three
				case "reopen":
					nth, done = 2, 3 // the discard before is done
				}
				if point == "triage:committed" {
					done = map[string]int{"discard-many": 3, "reopen": 0}[do]
					if do != "discard-many" && do != "reopen" {
						done = 2
					}
				}
				m.dies(program, point, nth, do, ids...)
				want := decision
				if do == "reopen" {
					want = "discarded"
				}
				require.Equal(t, done,
					testkit.Count(t, m.store, `select count(*) from dead_letter where decision = $1`, want))
				require.Equal(t, 3-done, m.waiting())
				audits := testkit.Count(t, m.store, `select count(*) from operator_audit`) - before
				sent := testkit.Count(t, m.store, `select coalesce(sum(cardinality(message_ids)), 0) from outbox`)
				switch do {
				case "requeue", "send", "return":
					require.Equal(t, []int{done, done}, []int{audits, sent})
				case "discard":
					require.Equal(t, []int{done, 0}, []int{audits, sent})
				case "discard-many":
					require.Equal(t, []int{min(done, 1), 0}, []int{audits, sent})
				}
				if do == "requeue" {
					require.Equal(t, done, testkit.Count(t, m.store,
						`select count(*) from execution where original_execution is not null`))
				}
			})
		}
	}
}
