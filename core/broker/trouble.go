package broker

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/phrase"
)

// ConnectError reports a connection that the broker did not accept, with the login and the virtual host.
type ConnectError struct {
	User, VHost string
	Err         error
}

// Error implements error.
func (e *ConnectError) Error() string { return "connect to the message broker: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// BlockedError reports that the broker accepts no messages, with the exhausted resource.
type BlockedError struct{ Resource string }

// Error implements error.
func (e *BlockedError) Error() string { return ErrBlocked.Error() + ": " + e.Resource }

// Unwrap returns ErrBlocked.
func (e *BlockedError) Unwrap() error { return ErrBlocked }

// Trouble says what an error of a Broker or of Management means for an operator.
func Trouble(err error) phrase.Trouble {
	const start = "start it, or correct message_queue.url"
	if err == nil {
		return phrase.Trouble{}
	}
	if known, ok := errors.AsType[phrase.Trouble](err); ok {
		return known
	}
	if answer, ok := errors.AsType[*ManagementError](err); ok {
		return answer.trouble()
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return phrase.Trouble{
			Fact: "the broker blocks publishers (" + blocked.Resource + ")",
			Fix:  "give it memory or disk, or raise its limit; publishing goes on by itself",
		}
	}
	connect, connecting := errors.AsType[*ConnectError](err)
	server, answered := errors.AsType[*amqp.Error](err)
	switch {
	case !answered:
		if network := phrase.Network(err); network != "" {
			return phrase.Trouble{Fact: "the broker " + network, Fix: start}
		}
		if errors.Is(err, ErrNacked) {
			return phrase.Trouble{
				Fact: oneLine(err.Error()),
				Fix:  "a queue is full or without a leader: look at it, and at max-length and overflow of its policies",
			}
		}
		if errors.Is(err, ErrNotConnected) {
			return phrase.Trouble{Fact: "the broker is not connected yet", Fix: start}
		}
		if !connecting {
			return phrase.Trouble{Fact: oneLine(err.Error())}
		}
		return phrase.Trouble{Fact: "the broker cannot be reached (" + oneLine(connect.Err.Error()) + ")", Fix: start}
	case connecting && (server.Code == amqp.NotAllowed || errors.Is(err, amqp.ErrVhost)):
		return phrase.Trouble{
			Fact: "the broker refuses the virtual host " + connect.VHost + " to the user " + connect.User +
				" (" + server.Reason + ")",
			Fix: "create it, give the user permissions in it, or raise the limits of both: rabbitmqctl add_vhost, " +
				"set_permissions, set_vhost_limits, set_user_limits; or correct message_queue.url",
		}
	case connecting && server.Code == amqp.AccessRefused:
		return phrase.Trouble{
			Fact: "the broker refuses the login " + connect.User,
			Fix:  "correct the user and the password in message_queue.url",
		}
	case server.Code == amqp.AccessRefused:
		return phrase.Trouble{
			Fact: "the user of message_queue.url lacks a permission (" + server.Reason + ")",
			Fix:  "give it with rabbitmqctl set_permissions, see attune-executor doctor --as engine",
		}
	case server.Code == amqp.NotAllowed, server.Code == amqp.ResourceError,
		server.Code == amqp.PreconditionFailed && strings.Contains(server.Reason, "limit"):
		return phrase.Trouble{
			Fact: "the broker refuses (" + server.Reason + ")",
			Fix:  "raise the limits of the virtual host and its users: rabbitmqctl set_vhost_limits, set_user_limits",
		}
	case server.Recover: // it closed a channel only
		return phrase.Trouble{
			Fact: "the broker refuses (" + server.Reason + ")",
			Fix:  "compare its exchanges and queues with attune-executor doctor",
		}
	case server.Code == amqp.ConnectionForced:
		return phrase.Trouble{Fact: "the broker closed the connection (" + server.Reason + ")", Fix: start}
	default:
		return phrase.Trouble{
			Fact: "the broker ended the connection (" + server.Reason + ")", Fix: "look into the log of the broker",
		}
	}
}

// oneLine joins the lines of an error: a Broker names each node.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// Trouble says what is wrong with the connections, and is empty while they work.
func (b *Broker) Trouble() phrase.Trouble {
	for _, l := range []*link{b.publish, b.consume} {
		if t := l.describe().Trouble; t.Fact != "" {
			return t
		}
	}
	switch b.State() {
	case StateConnected, StateBlocked:
		return phrase.Trouble{}
	default:
		return Trouble(ErrNotConnected)
	}
}

// trouble says what an unsuccessful request to the management API means for an operator.
func (e *ManagementError) trouble() phrase.Trouble {
	const key = "message_queue.management_url"
	if e.Err != nil {
		network := cmp.Or(phrase.Network(e.Err), "cannot be reached ("+oneLine(e.Err.Error())+")")
		return phrase.Trouble{
			Fact: "the management API " + network,
			Fix:  "enable it (rabbitmq-plugins enable rabbitmq_management), correct " + key + ", or leave that out",
		}
	}
	said := ""
	if e.Reason != "" {
		said = " (" + e.Reason + ")"
	}
	switch code := e.StatusCode; {
	case e.Page:
		return phrase.Trouble{
			Fact: "the address of the management API answers with something else" + said,
			Fix:  "correct " + key + ", whose port is usually 15672, or look at the proxy in between",
		}
	case code == http.StatusUnauthorized:
		return phrase.Trouble{
			Fact: "the management API refuses the login " + e.User,
			Fix:  "correct the user and the password in " + key + "; the broker itself works without it",
		}
	case code == http.StatusForbidden:
		return phrase.Trouble{
			Fact: "the management API refuses the login " + e.User + " this reading" + said,
			Fix:  "give it the tag monitoring: rabbitmqctl set_user_tags " + e.User + " monitoring",
		}
	case code == http.StatusNotFound:
		return phrase.Trouble{
			Fact: "the management API does not know what was asked for" + said,
			Fix:  "correct " + key + ", and the virtual host in message_queue.url",
		}
	case e.statisticsOff():
		return phrase.Trouble{
			Fact: "the management API counts nothing: its statistics are off on this node",
			Fix:  "leave it so, or set management_agent.disable_metrics_collector = false in rabbitmq.conf",
		}
	case code >= 300 && code < 400:
		return phrase.Trouble{
			Fact: "the management API redirects" + said, Fix: "name the address where it leads in " + key,
		}
	case code == http.StatusServiceUnavailable, code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		return phrase.Trouble{
			Fact: fmt.Sprintf("the management API is not available at the moment (%d %s)", code, http.StatusText(code)),
			Fix:  "wait until the broker has started, or look at the proxy in between",
		}
	default:
		return phrase.Trouble{
			Fact: fmt.Sprintf("the management API fails (%d %s)", code, cmp.Or(e.Reason, http.StatusText(code))),
			Fix:  "look into the log of the broker",
		}
	}
}

// statisticsOff reports the answer to requests for what a node does not collect.
func (e *ManagementError) statisticsOff() bool {
	return e.StatusCode == http.StatusBadRequest && strings.Contains(e.Reason, "Stats in management UI are disabled")
}

// StatisticsOff reports whether the management API did not answer because its statistics are off.
func StatisticsOff(err error) bool {
	answer, ok := errors.AsType[*ManagementError](err)
	return ok && answer.statisticsOff()
}
