package broker_test

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is between the package and the server. It can hold back the bytes of the server.
type proxy struct {
	url string

	mu      sync.Mutex
	gate    *sync.Cond
	frozen  bool
	closed  bool
	conns   []net.Conn
	clients []net.Conn // those of conns that face the package
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	parsed, err := url.Parse(target)
	require.NoError(t, err)
	upstream := parsed.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	parsed.Host = listener.Addr().String()
	p := &proxy{url: parsed.String()}
	p.gate = sync.NewCond(&p.mu)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.clients = append(p.clients, client)
			p.mu.Unlock()
			serving.Go(func() { p.pass(server, client, false) })
			serving.Go(func() { p.pass(client, server, true) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		p.closed = true
		for _, conn := range p.conns {
			_ = conn.Close()
		}
		p.gate.Broadcast()
		p.mu.Unlock()
		serving.Wait()
	})
	return p
}

// pass copies until either side closes. The bytes of the gated side wait while the proxy is frozen.
func (p *proxy) pass(to, from net.Conn, gated bool) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if gated {
			p.mu.Lock()
			for p.frozen && !p.closed {
				p.gate.Wait()
			}
			p.mu.Unlock()
		}
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				err = errors.Join(err, writeErr)
			}
		}
		if err != nil {
			_ = from.Close()
			return
		}
	}
}

func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = false
	p.gate.Broadcast()
}

// say sends every client a method frame of the connection class, as if the
// server had said it. The connections must be idle.
func (p *proxy) say(t *testing.T, method byte, arguments string) {
	t.Helper()
	const class = 10
	payload := append([]byte{0, class, 0, method}, arguments...)
	frame := append([]byte{1, 0, 0, 0, 0, 0, byte(len(payload))}, payload...)
	frame = append(frame, 0xCE)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, client := range p.clients {
		_, err := client.Write(frame)
		require.NoError(t, err)
	}
}

// cut closes every connection without an orderly close.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns, p.clients = nil, nil
}
