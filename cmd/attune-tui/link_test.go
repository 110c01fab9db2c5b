package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// link is the way to a server, which can be cut and mended, and stopped up. While it is
// cut its port stays taken, so that no other connection gets it.
type link struct {
	to     string
	mu     sync.Mutex
	whole  bool          // guarded by mu
	mud    chan struct{} // guarded by mu; what comes through waits for its closing
	open   sync.Map      // of net.Conn
	copies sync.WaitGroup
}

// through makes a link to the server of an address, cut as yet, and the address that
// leads over it.
func through(t *testing.T, address string) (*link, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	door, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Nothing is waited for.
	require.NoError(t, err)
	w := &link{to: u.Host}
	u.Host = door.Addr().String()
	w.copies.Go(func() {
		for {
			from, err := door.Accept()
			if err != nil {
				return
			}
			w.pass(from)
		}
	})
	t.Cleanup(func() {
		_ = door.Close() // ends the loop
		w.flow()
		w.cut()
		w.copies.Wait()
	})
	return w, u.String()
}

// mend has the server reached.
func (w *link) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = true
}

// cut ends every connection and takes no new one, as when a server dies.
func (w *link) cut() {
	w.mu.Lock()
	w.whole = false
	w.mu.Unlock()
	for conn := range w.open.Range {
		if conn, ok := conn.(net.Conn); ok {
			_ = conn.Close() // what is cut is cut
		}
	}
}

// clog keeps back all that comes through: the server is there and says nothing.
func (w *link) clog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mud = make(chan struct{})
}

// flow lets through what was kept back.
func (w *link) flow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mud != nil {
		close(w.mud)
		w.mud = nil
	}
}

func (w *link) pass(from net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock() // so that what is cut next is known
	if !w.whole {
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
			_, _ = io.Copy(pair[0], &wade{w, pair[1]}) // ends with either connection
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
}

// wade reads from a connection as long as nothing sticks.
type wade struct {
	w    *link
	conn net.Conn
}

func (r *wade) Read(into []byte) (int, error) {
	n, err := r.conn.Read(into)
	r.w.mu.Lock()
	mud := r.w.mud
	r.w.mu.Unlock()
	if mud != nil {
		<-mud
	}
	return n, err
}
