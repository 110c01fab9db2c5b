package testkit

import (
	"bytes"
	"net"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// ForgedLong is a header whose int64 value a Forger writes with the type L, like some AMQP clients, but not the
// Go library.
const ForgedLong = "forged-long"

// Forger returns a channel in confirm mode that can write ForgedLong.
func Forger(t testing.TB, amqpURL string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.DialConfig(amqpURL, amqp.Config{Dial: func(network, address string) (net.Conn, error) {
		socket, err := net.Dial(network, address) //nolint:noctx // of a test
		return forgingConn{socket}, err
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	channel, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, channel.Confirm(false))
	return channel
}

type forgingConn struct{ net.Conn }

// Write implements net.Conn.
func (c forgingConn) Write(p []byte) (int, error) {
	return c.Conn.Write(bytes.ReplaceAll(p, []byte(ForgedLong+"l"), []byte(ForgedLong+"L")))
}
