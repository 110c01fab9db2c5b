package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// link is a TCP proxy of a server that a test can cut, mend, clog and unclog. It keeps its port while it is cut.
type link struct {
	to      string
	mu      sync.Mutex
	up      bool          // guarded by mu
	clogged chan struct{} // guarded by mu; data waits until it is closed
	open    sync.Map      // of net.Conn
	copies  sync.WaitGroup
}

// through starts a link to the server of an address, which is cut at first, and returns the address of the link.
func through(t *testing.T, address string) (*link, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Nothing is waited for.
	require.NoError(t, err)
	w := &link{to: u.Host}
	u.Host = listener.Addr().String()
	w.copies.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			w.pass(from)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop
		w.unclog()
		w.cut()
		w.copies.Wait()
	})
	return w, u.String()
}

// mend accepts connections again.
func (w *link) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = true
}

// cut closes every connection and refuses new ones, as when a server dies.
func (w *link) cut() {
	w.mu.Lock()
	w.up = false
	w.mu.Unlock()
	for conn := range w.open.Range {
		if conn, ok := conn.(net.Conn); ok {
			_ = conn.Close() // it may be closed already
		}
	}
}

// clog holds back all data, as a server that does not answer.
func (w *link) clog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clogged = make(chan struct{})
}

// unclog delivers the data that was held back.
func (w *link) unclog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clogged != nil {
		close(w.clogged)
		w.clogged = nil
	}
}

func (w *link) pass(from net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock() // before the next cut
	if !w.up {
		_ = from.Close() // the peer is gone
		return
	}
	server, err := net.Dial("tcp", w.to) //nolint:noctx // It is on this machine.
	if err != nil {
		_ = from.Close() // the client tries again
		return
	}
	w.open.Store(from, nil)
	w.open.Store(server, nil)
	for _, pair := range [][2]net.Conn{{from, server}, {server, from}} {
		w.copies.Go(func() {
			_, _ = io.Copy(pair[0], &cloggable{w, pair[1]}) // ends with either connection
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
}

// cloggable reads from a connection, and waits while the link is clogged.
type cloggable struct {
	w    *link
	conn net.Conn
}

func (r *cloggable) Read(into []byte) (int, error) {
	n, err := r.conn.Read(into)
	r.w.mu.Lock()
	clogged := r.w.clogged
	r.w.mu.Unlock()
	if clogged != nil {
		<-clogged
	}
	return n, err
}
