package broker

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Table holds AMQP headers. Nested tables are Table, lists are []any.
type Table = amqp.Table

// Config configures the connection to a broker. Only URL is required.
type Config struct {
	// CallTimeout bounds one call to the broker, such as a declaration; after it the connection is
	// closed.
	CallTimeout time.Duration
	// CloseTimeout bounds the orderly closing of a connection.
	CloseTimeout time.Duration
	// ConfirmTimeout is how long a message may stay unconfirmed before its outcome is Unknown.
	ConfirmTimeout time.Duration
	// ConnectTimeout is how long a caller waits for a connection that is down or blocked. A shorter
	// context wins.
	ConnectTimeout time.Duration
	// ConnectionName is the name of the connections in the management UI.
	ConnectionName string
	// DialTimeout bounds one attempt to connect, handshake included.
	DialTimeout time.Duration
	// Heartbeat is the heartbeat interval of the connections.
	Heartbeat time.Duration
	// Login returns the user and the password for the next connection; nil means those of URL.
	Login func() (user, password string)
	// ManagementLogin returns those for the next request to the management API; nil means those of ManagementURL.
	ManagementLogin func() (user, password string)
	// ManagementURL is the URL of the management API, with credentials. Without it only the exact
	// dead-letter bindings are declared.
	ManagementURL string
	// MaxBackoff caps the pause between attempts to connect or to subscribe.
	MaxBackoff time.Duration
	// MinBackoff is the first such pause.
	MinBackoff time.Duration
	// NoDeadLetters declares no routes for dead letters beyond the common declarations, on which
	// the broker drops them. Existing routes stay.
	NoDeadLetters bool
	// Properties are shown with the connections in the management UI.
	Properties map[string]string
	// QuorumQueues declares queues of type quorum instead of classic ones.
	QuorumQueues bool
	// Trials records which message is tried alone. Without it redelivered messages are like any other.
	Trials Trials
	// URL is the AMQP URL, with the virtual host as its path. It may name several nodes of a cluster,
	// separated by commas.
	URL string
	// Window is how many messages may be unconfirmed at a time.
	Window int
	// WriteTimeout bounds one write to the socket; after it the connection is closed.
	WriteTimeout time.Duration
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.CallTimeout, 30 * time.Second},
		{&c.CloseTimeout, 2 * time.Second},
		{&c.ConfirmTimeout, 15 * time.Second},
		{&c.ConnectTimeout, 10 * time.Second},
		{&c.DialTimeout, 10 * time.Second},
		{&c.Heartbeat, 10 * time.Second},
		{&c.MaxBackoff, 5 * time.Second},
		{&c.MinBackoff, 100 * time.Millisecond},
		{&c.WriteTimeout, 15 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.ConnectionName == "" {
		c.ConnectionName = "attune"
	}
	if c.Window <= 0 {
		c.Window = 128
	}
	return c
}

// VHostOf returns the virtual host of an AMQP URL; "/" if it has none.
func VHostOf(amqpURL string) (string, error) {
	uri, err := parseURL(amqpURL)
	return uri.Vhost, err
}

// nodes returns the URL of each node that a URL names.
func nodes(address string) (each []string) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return []string{address}
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	login := strings.LastIndex(rest[:end], "@") + 1
	for host := range strings.SplitSeq(rest[login:end], ",") {
		each = append(each, scheme+"://"+rest[:login]+host+rest[end:])
	}
	return each
}

// parseURL parses an AMQP URL of its first node; its error does not repeat the URL, which holds the
// password.
func parseURL(amqpURL string) (amqp.URI, error) {
	uri, err := amqp.ParseURI(nodes(amqpURL)[0])
	if detailed := (*url.Error)(nil); errors.As(err, &detailed) {
		err = detailed.Err
	}
	if err != nil {
		return amqp.URI{}, fmt.Errorf("read the AMQP URL: %w", err)
	}
	return uri, nil
}
