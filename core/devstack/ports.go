package devstack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Ports are taken below the range that the system uses for outgoing
// connections, so that no client socket can sit on one while a server is down.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePorts returns n free ports of 127.0.0.1. It holds them together while it chooses, so they
// differ. Another process may take one before its use; the starters then ask again.
func freePorts(n int) ([]int, error) {
	var (
		ports []int
		held  []net.Listener
	)
	defer func() {
		for _, listener := range held {
			_ = listener.Close() // only held to keep the port for this call
		}
	}()
	for range 2000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort) //nolint:gosec // a port is no secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
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

// portFree reports whether a server could listen on the port now.
func portFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = listener.Close() // it was only a question
	return true
}

// listening reports whether a server answers on the port. It asks by connecting:
// a question by portFree takes the port for an instant, and the server that is
// just about to take it would fail.
func listening(port int) bool {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	if err != nil {
		return false
	}
	_ = connection.Close() // it was only a question
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
