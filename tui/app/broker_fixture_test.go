package app

import (
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
)

// sampleBroker is a broker with an orphan queue, one that drops what expires, and
// one that the broker has not counted yet.
func sampleBroker(reading monitor.Reading, dead monitor.BrokerQueue) *monitor.Broker {
	dlx, ttl := "attune.dlx", 5*time.Minute
	dead.Type, dead.Durable = "classic", true
	engine := monitor.BrokerQueue{
		Name: "attune.execution.requests.queue", Ready: 2, Unacked: 10, Consumers: 1, Type: "classic", Durable: true,
		State:         "running",
		QueueSettings: broker.QueueSettings{DeadLetterExchange: &dlx}, Published: new(41.2),
		Delivered: new(40.8), Acked: new(40.8),
	}
	worker := func(id, ready, unacked, consumers int64) monitor.BrokerQueue {
		return monitor.BrokerQueue{
			Name: monitor.WorkerQueue(id), Ready: ready, Unacked: unacked, Consumers: consumers, Type: "classic",
			Durable: true,
			State:   "running", QueueSettings: broker.QueueSettings{TTL: &ttl, DeadLetterExchange: &dlx},
			Worker: &id, Published: new(3.0),
			Delivered: new(float64(consumers) * 3),
		}
	}
	orphan := worker(9, 2, 0, 0)
	orphan.DeadLetterExchange = nil
	fresh := worker(3, 0, 0, 0)
	fresh.Uncounted, fresh.Published, fresh.Delivered = true, nil, nil
	foreign := monitor.BrokerQueue{
		Name: "billing.exports", Type: "quorum", Durable: true, State: "running", Policy: "ha-all",
		QueueSettings: broker.QueueSettings{MaxLength: new(int64(100_000))}, Consumers: 2,
	}
	return &monitor.Broker{
		Reading: monitor.Reading{Sources: reading.Sources[1:]}, Node: "rabbit@mq-1", Version: "3.13.7",
		VHost: "/attune",
		Queues: []monitor.BrokerQueue{
			dead, engine, worker(7, 2, 0, 0), worker(1, 0, 2, 1), worker(2, 0, 2, 1), orphan,
			fresh, foreign,
		},
		Nodes: []monitor.BrokerNode{{
			Name: "rabbit@mq-1", Running: true, MemoryUsed: new(int64(412 << 20)), MemoryLimit: new(int64(3 << 30)),
			DiskFree: new(int64(80 << 30)), DiskLimit: new(int64(50 << 20)), Uptime: new(6 * 24 * time.Hour),
		}},
	}
}

// sampleChecks are the checks of a wiring in which one queue drops what expires,
// and of rows one of which holds a slot without an execution.
func sampleChecks(reading monitor.Reading) *monitor.Checks {
	list := []monitor.Check{
		{Name: "topology.dlx", Status: monitor.CheckOK, Text: "attune.dlx exists, type direct"},
		{
			Name: "topology.route", Status: monitor.CheckOK,
			Text: "all 17 keys that can be dead-lettered lead to a queue",
		},
		{
			Name: "topology.ttl", Status: monitor.CheckProblem, Seen: ago(6 * time.Hour),
			Objects: []string{"worker.9.executions"}, View: "broker",
			Text: "queue worker.9.executions with a time to live and no dead-letter exchange: the broker deletes what expires",
			Fix:  "a policy with dead-letter-exchange attune.dlx for worker.9.executions and its like",
		},
		{
			Name: "topology.dlq", Status: monitor.CheckOK,
			Text: "attune.dlx.queue: 1 consumer, no time to live, no length",
		},
		{
			Name: "topology.orphans", Status: monitor.CheckProblem, Objects: []string{"worker.9.executions"},
			View: "broker", Filter: "orphan",
			Text: "queue worker.9.executions of workers without a row, 2 messages wait in them for nobody",
			Fix:  "delete it",
		},
	}
	list = append(list,
		monitor.Check{
			Name: "admission.slots", Status: monitor.CheckOK,
			Text: "each queue counts the slots that executions hold",
		},
		monitor.Check{
			Name: "admission.leaked_slot", Status: monitor.CheckProblem, Objects: []string{"884291"}, View: "queues",
			Filter: "pack.sync",
			Text:   "ended execution 884291 still holds a slot, one of pack.sync: its queue cannot use it",
			Fix:    "A repair on the queue gives it back",
		},
		monitor.Check{Name: "execution.forgotten", Status: monitor.CheckOK, Text: "no request waits outside a queue"},
		monitor.Check{Name: "queue_stats", Status: monitor.CheckUnknown, Text: "the database did not answer in time"},
	)
	return &monitor.Checks{Reading: reading, List: list}
}
