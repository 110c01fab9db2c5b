package devstack

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that is about to take a port is never kept from it by the question
// whether it has.
func TestAskingForAServerNeverTakesItsPort(t *testing.T) {
	t.Parallel()
	ports, err := freePorts(1)
	require.NoError(t, err)
	stop, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
				listening(ports[0])
			}
		}
	}()
	for range 300 {
		listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: ports[0]})
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
	close(stop)
	<-asked
	require.False(t, listening(ports[0]))
}
