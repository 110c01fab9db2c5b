package broker

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// A refusal that closed a channel is no end of the connection, and only a limit is raised.
func TestRefusalsOfAChannel(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"PRECONDITION_FAILED - cannot declare queue 'q': queue limit in vhost '/' (5) is reached":     "raise the limits",
		"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q': received 5, current 7": "compare its exchanges",
		"NOT_FOUND - no queue 'q' in vhost '/'":                                                       "compare its exchanges",
	} {
		code := amqp.PreconditionFailed
		if reason[0] == 'N' {
			code = amqp.NotFound
		}
		trouble := Trouble(&amqp.Error{Code: code, Reason: reason, Server: true, Recover: true})
		require.Equal(t, "the broker refuses ("+reason+")", trouble.Fact)
		require.Contains(t, trouble.Fix, want)
	}
}
