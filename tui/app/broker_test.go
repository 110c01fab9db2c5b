package app

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// Each queue has its effective settings and its worker; a queue whose worker has no row is marked.
func TestTheBrokerNamesTheOwnersOfQueues(t *testing.T) {
	b := started(t, sample(), 160, 40)
	b.press("9")
	require.Equal(t, keymap.InBroker, b.view)
	frame := b.View()
	require.Contains(t, frame, "worker-node-02", "worker 7 is this one")
	require.Contains(t, frame, "no row")
	require.Contains(t, frame, "no worker row: orphan")
	require.Contains(t, frame, "billing.exports")
	require.Contains(t, frame, "memory 412M of 3.0G")
	require.Contains(t, frame, "alarms none")
	require.Contains(t, frame, "topology.ttl")
	require.Contains(t, frame, "Fix: a policy with dead-letter-exchange attune.dlx")
}

// TestUncountedMessagesAreNotZero: a queue that is new has no numbers yet.
func TestUncountedMessagesAreNotZero(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("9", "/")
	b.typed("worker.3.")
	b.press("enter")
	frame := b.View()
	require.Contains(t, frame, "-- ready, -- unacked, -- consumers")
	require.Contains(t, frame, "-- in, -- out, -- acknowledged")
	require.Contains(t, frame, "1 not counted yet")
}

// Old data of a broker that is down stays, marked. Data that was never read has no numbers.
func TestABrokerThatIsAwayReadsAsUnknown(t *testing.T) {
	source := sample()
	b := started(t, source, 140, 40)
	b.press("9")
	b.source.fail = map[screen.Feed]error{
		screen.FeedBroker: errors.New("no answer within 1.5s"),
		screen.FeedChecks: errors.New("no answer"),
	}
	b.now = b.now.Add(20 * time.Second)
	b.run(b.refresh())
	require.Contains(t, b.View(), "last read 20s ago")
	require.Contains(t, b.View(), "8? queues")

	silent := sample()
	silent.fail = b.source.fail
	b = started(t, silent, 140, 40)
	b.press("9")
	require.Contains(t, b.View(), "the message broker cannot be read")
	require.NotContains(t, b.View(), "ready 0")

	blind := sample()
	blind.broker.AlarmsUnknown, blind.broker.BlockedUnknown, blind.broker.NodesUnknown = "refused", "refused",
		"not allowed: monitoring"
	b = started(t, blind, 140, 40)
	b.press("9")
	require.Contains(t, b.View(), "alarms --")
	require.Contains(t, b.View(), "blocked --")
	require.Contains(t, b.View(), "nodes --  not allowed: monitoring")
}

// TestTheBrokerNarrowsSortsAndLeadsOn: problems only, filter, sort and enter.
func TestTheBrokerNarrowsSortsAndLeadsOn(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("9")
	list := b.screens[keymap.InBroker].(interface { //nolint:forcetypeassert,errcheck // a test
		Len() int
		Key(int) string
	})
	keys := func() (out []string) {
		for i := range list.Len() {
			out = append(out, list.Key(i))
		}
		return out
	}
	require.Len(t, keys(), 8)
	require.Equal(t, "worker.9.executions", keys()[0], "the worst first")
	b.press("z")
	require.Equal(t, []string{"worker.9.executions", "attune.dlx.queue", "worker.7.executions"}, keys())
	b.press("z", "s", "7")
	require.True(t, slices.IsSorted(keys()))
	b.press("s", "7")
	require.Equal(t, "worker.9.executions", keys()[0], "the same column again reverses")
	b.press("/")
	b.typed("orphan")
	b.press("enter")
	require.Equal(t, []string{"worker.9.executions"}, keys())
	b.press("enter")
	require.Equal(t, keymap.InBroker, b.view, "there is no worker to go to")
	b = started(t, sample(), 140, 40)
	b.press("9", "/")
	b.typed("worker.7")
	b.press("enter", "enter")
	require.Equal(t, keymap.InWorkers, b.view)
	require.Contains(t, b.View(), "/worker-node-02")

	b = started(t, sample(), 140, 40)
	b.press("9", "/")
	b.typed("attune.dlx")
	b.press("enter", "enter")
	require.Equal(t, keymap.InDeadLetters, b.view)
}

// TestTheBrokerIsFilteredInTheLanguageOfAllLists, while it is typed.
func TestTheBrokerIsFilteredInTheLanguageOfAllLists(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"worker:orphan": 1, "worker:none": 3, "worker:worker-node-02": 1, "state:problem": 1, "state:warning": 2,
		"state:uncounted": 1, "ready>0 !worker:orphan": 3,
		"consumers:0 | queue:attune.*": 4, "consumers<1": 2, "ttl>1m": 5, "dlx:none": 3, "type:classic": 7,
		"note:orphan": 1, "policy:none": 7, "regex:/^worker\\.[79]/": 2,
		"in>=0": 5, "max>0": 1, "unacked>1": 3, "out>1000": 0,
	} {
		b := started(t, sample(), 140, 40)
		b.press("9", "/")
		b.typed(text)
		require.Empty(t, b.wrong(), text)
		got, ok := b.screen().(interface{ Len() int })
		require.True(t, ok)
		require.Equal(t, want, got.Len(), text)
	}
	b := started(t, sample(), 140, 40)
	b.press("9", "/")
	b.typed("stat")
	b.press("tab")
	b.typed("pro")
	b.press("tab", "enter")
	require.Contains(t, b.View(), "/state:problem")
	b.press("/")
	b.typed("depth>1")
	require.Contains(t, b.View(), `there is no field "depth" here`)
	b.press("esc", "/")
	b.typed("worker:nobody")
	b.press("enter")
	require.Contains(t, b.View(), "No queue matches /state:problem worker:nobody.")
	require.Contains(t, b.View(), "ready>2")
}

// TestTheChecksAreMadeEveryHalfMinute, not with every poll.
func TestTheChecksAreMadeEveryHalfMinute(t *testing.T) {
	b := started(t, sample(), 140, 40)
	b.press("9")
	require.Equal(t, 3, b.env.Data.Checks.Count(monitor.CheckProblem))
	require.Equal(t, checksEvery, b.delay(screen.FeedChecks, b.env.Data.Fresh(screen.FeedChecks)))
}

// Workers read notices of packs only while they run, so these queues are no problem without a consumer.
func TestQueuesOfPackNoticesNeedNoConsumer(t *testing.T) {
	source := sample()
	for _, id := range []int64{1, 2, 7} {
		source.broker.Queues = append([]monitor.BrokerQueue{{
			Name: "worker." + strconv.FormatInt(id, 10) + ".packs", Ready: 1, Type: "classic", Durable: true,
			State: "running", Worker: &id,
		}}, source.broker.Queues...)
	}
	b := started(t, source, 160, 40)
	b.press("9")
	lines := strings.Split(b.View(), "\n")
	place := func(text string) int {
		return slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
	}
	require.NotContains(t, lines[place("worker.1.packs")], "▲")
	for _, name := range []string{"worker.7.executions", "attune.execution.requests.queue", "worker.2.executions"} {
		require.Less(t, place(name), place("worker.1.packs"), name)
	}
	b.press("z")
	require.NotContains(t, b.View(), ".packs")
}
