package devstack

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are below the system's range for outgoing connections, so that no client socket uses one while a
// server is down.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePorts returns n different free ports of 127.0.0.1. Another process may take one before its use; the
// starters then choose again.
func freePorts(n int) ([]int, error) {
	var (
		ports []int
		held  []net.Listener
	)
	defer func() {
		for _, listener := range held {
			_ = listener.Close() // it only reserved the port during this call
		}
	}()
	for range 2000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort) //nolint:gosec // a port is no secret
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		held = append(held, listener)
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports on 127.0.0.1")
}

// portFree reports whether a server could listen on the port. It takes the port for an instant: a server
// that starts at the same time would fail.
func portFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	_ = listener.Close() // it was only a probe
	return true
}

func allFree(ports ...int) bool {
	for _, port := range ports {
		if port == 0 || !portFree(port) {
			return false
		}
	}
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
