package worker_test

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
	"github.com/attune-go/attune/lab/testkit"
)

// childVariable makes the test binary a worker process that only a signal ends. CHILD_DATABASE and CHILD_BROKER name
// its servers.
const childVariable = "ATTUNE_WORKER_TEST_CHILD"

func runChild() {
	ctx := context.Background()
	level := "debug"
	if os.Getenv("CHILD_QUIET") != "" {
		level = "error"
	}
	logger, err := telemetry.NewLogger(os.Stderr, level, "json")
	exitOn(err)
	st, err := store.Open(ctx, store.Config{URL: os.Getenv("CHILD_DATABASE"), Schema: testkit.Schema, HotPath: true},
		logger)
	exitOn(err)
	b := broker.New(broker.Config{URL: os.Getenv("CHILD_BROKER")}, logger, nil)
	exitOn(b.Start(ctx))
	actions := builtin.Actions()
	places, _ := strconv.Atoi(os.Getenv("CHILD_PLACES"))
	w, err := worker.New(worker.Config{
		Name: "w1", MaxConcurrent: max(places, 1), Actions: actions, HeartbeatInterval: 100 * time.Millisecond,
		BatchCompletions: os.Getenv("CHILD_BATCHES") == "true",
	}, worker.Deps{Store: st, Broker: b, Logger: logger})
	exitOn(err)
	exitOn(w.Start(ctx))
	<-w.Done()
}

func exitOn(err error) {
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}
