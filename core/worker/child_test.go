package worker_test

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/core/worker"
	"github.com/attune-go/attune/core/worker/builtin"
)

// childVariable makes the test binary a worker process that only a signal
// ends: "DATABASE_URL BROKER_URL" are in two further variables.
const childVariable = "ATTUNE_WORKER_TEST_CHILD"

func runChild() {
	ctx := context.Background()
	logger, err := telemetry.NewLogger(os.Stderr, "debug", "json")
	exitOn(err)
	st, err := store.Open(ctx, store.Config{URL: os.Getenv("CHILD_DATABASE"), Schema: testkit.Schema}, logger)
	exitOn(err)
	b := broker.New(broker.Config{URL: os.Getenv("CHILD_BROKER")}, logger, nil)
	exitOn(b.Start(ctx))
	places, _ := strconv.Atoi(os.Getenv("CHILD_PLACES"))
	w, err := worker.New(worker.Config{
		Name: "w1", MaxConcurrent: max(places, 1), Actions: builtin.Actions(), HeartbeatInterval: 100 * time.Millisecond,
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
