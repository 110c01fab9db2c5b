package alerting

import (
	"context"
	"fmt"
	"regexp"
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
// count. known are the ids of all replicas with a row, also of vanished ones: others belong to an
// installation with another database on the same virtual host. The numbers say nothing for quorum
// queues, which still count the consumers of a node that is down.
func OtherExecutors(ctx context.Context, queues queueStates, listed []broker.QueueConsumer,
	replicas int, known []string, quorum bool,
) ([]string, error) {
	var others []string
	for _, queue := range []string{message.QueueExecutionRequests, message.QueueExecutionCompleted} {
		state, err := queues.QueueState(ctx, queue)
		if err != nil {
			return nil, err
		}
		named := 0
		for _, c := range listed {
			if c.Queue != queue || c.Peer == "" {
				continue
			}
			named++
			switch {
			case !strings.HasPrefix(c.Connection, OwnConnection):
				others = append(others, consumerText(c))
			case (quorum || state.Consumers > replicas) && foreign(c.Connection, known):
				others = append(others, consumerText(c)+", for another database: give each installation a virtual host")
			}
		}
		if !quorum && named < state.Consumers && state.Consumers > replicas {
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

var replicaConnection = regexp.MustCompile("^" + OwnConnection + " ([0-9a-f]{8})(/|$)")

// foreign reports whether a connection is of a replica without a row in this database.
func foreign(connection string, known []string) bool {
	found := replicaConnection.FindStringSubmatch(connection)
	return found != nil && !slices.ContainsFunc(known, func(id string) bool { return strings.HasPrefix(id, found[1]) })
}

func consumerText(c broker.QueueConsumer) string {
	connection := c.Connection
	if connection == "" {
		connection = "without a name"
	}
	return fmt.Sprintf("%s consumes %s by connection %s from %s", c.Tag, c.Queue, connection, c.Peer)
}
