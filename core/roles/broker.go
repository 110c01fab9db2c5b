package roles

import (
	"regexp"
	"strings"

	"github.com/attune-go/attune/core/message"
)

// Broker are the permissions of a broker user on the virtual host: each is a regular expression of the names
// of exchanges and queues.
type Broker struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
	// Tag allows the management API to be read; empty for none.
	Tag string `json:"tag"`
}

// names is an expression that matches names, and nothing if there are none.
type names []string

func (n names) String() string {
	if len(n) == 0 {
		return "^$"
	}
	return "^(" + strings.Join(n, "|") + ")$"
}

func exactly(list ...string) (n names) {
	for _, name := range list {
		n = append(n, regexp.QuoteMeta(name))
	}
	return n
}

func all(parts ...names) (n names) {
	for _, part := range parts {
		n = append(n, part...)
	}
	return n
}

// workerQueues are the queues of all workers; a user of one worker may be restricted to its number.
// probes are the private queues that test the routes of dead letters. unnamed is the default exchange,
// whose messages are routed by the name of a queue.
var (
	workerQueues = names{`worker\.[0-9]+\.(executions|cancel|packs)`}
	probes       = names{`attune\.probe\..+`}
	unnamed      = names{`amq\.default`}
)

// BrokerOf returns the broker permissions of a role. Declaring a queue needs configure on it; binding it needs
// write on the queue and read on the exchange; a dead-letter exchange needs read on the queue and write on that
// exchange.
func BrokerOf(role Role) Broker {
	exchanges, deadLetters := exactly(message.Exchanges()...), exactly(message.QueueDeadLetter)
	ends := exactly(message.ExchangeExecutions, message.ExchangeDeadLetter)
	switch role {
	case Engine:
		queues := all(exactly(message.EngineQueues()...), deadLetters)
		return Broker{
			Configure: all(exchanges, queues, workerQueues, probes).String(),
			Write:     all(exchanges, queues, probes, unnamed).String(),
			Read:      all(exchanges, queues, probes).String(),
			Tag:       "monitoring",
		}
	case Worker:
		return Broker{
			Configure: all(exchanges, deadLetters, workerQueues).String(),
			Write:     all(ends, deadLetters, workerQueues, unnamed).String(),
			Read:      all(exactly(message.ExchangeEvents), ends, workerQueues).String(),
		}
	case Operator:
		return Broker{
			// A worker that is forgotten loses its queues, and the routes of its dead letters.
			Configure: all(workerQueues, probes).String(),
			Write:     all(exchanges, deadLetters, probes, unnamed).String(),
			// It takes dead letters, also from the queue of a lost worker.
			Read: all(deadLetters, exactly(message.ExchangeDeadLetter), workerQueues, probes).String(),
			Tag:  "monitoring",
		}
	default:
		return Broker{Configure: names{}.String(), Write: names{}.String(), Read: names{}.String(), Tag: "monitoring"}
	}
}

// Commands returns the rabbitmqctl commands that give a user these permissions.
func (b Broker) Commands(vhost, user string) []string {
	set := []string{
		"rabbitmqctl", "set_permissions", "-p", shell(vhost), shell(user), shell(b.Configure),
		shell(b.Write), shell(b.Read),
	}
	tags := strings.TrimSpace("rabbitmqctl set_user_tags " + shell(user) + " " + b.Tag)
	return []string{strings.Join(set, " "), tags}
}

func shell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
