package alerting

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/phrase"
)

// OwnConnection begins the names of our replicas' connections, executorTag the consumer tags of
// every executor.
const (
	OwnConnection = "attune-executor"
	executorTag   = "executor."
)

// queueStates reads the exact state of a queue; *broker.Broker does.
type queueStates interface {
	QueueState(ctx context.Context, name string) (broker.QueueState, error)
}

// OtherExecutors names consumers of the executor's queues that are no replica of ours: two engines
// would both admit the same executions. listed are the consumers of the management API, nil without
// it. Without a list, and for consumers not listed yet, those beyond the number of live replicas
// count.
func OtherExecutors(ctx context.Context, queues queueStates, listed []broker.QueueConsumer,
	replicas int) ([]string, error) {
	var others []string
	for _, queue := range []string{message.QueueExecutionRequests, message.QueueExecutionCompleted} {
		state, err := queues.QueueState(ctx, queue)
		if err != nil {
			return nil, err
		}
		known := 0
		for _, c := range listed {
			if c.Queue != queue || c.Peer == "" {
				continue
			}
			known++
			if !strings.HasPrefix(c.Connection, OwnConnection) {
				others = append(others, consumerText(c))
			}
		}
		if known < state.Consumers && state.Consumers > replicas {
			others = append(others, fmt.Sprintf("%s has %s, and %s",
				queue, phrase.Plural(state.Consumers, "consumer", "consumers"),
				phrase.Plural(replicas, "replica runs", "replicas run")))
		}
	}
	for _, c := range listed {
		hot := c.Queue == message.QueueExecutionRequests || c.Queue == message.QueueExecutionCompleted
		if !hot && c.Peer != "" && strings.HasPrefix(c.Tag, executorTag) &&
			!strings.HasPrefix(c.Connection, OwnConnection) {
			others = append(others, consumerText(c))
		}
	}
	slices.Sort(others)
	return others, nil
}

func consumerText(c broker.QueueConsumer) string {
	connection := c.Connection
	if connection == "" {
		connection = "without a name"
	}
	return fmt.Sprintf("%s consumes %s by connection %s from %s", c.Tag, c.Queue, connection, c.Peer)
}
