package redrive

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

// wire is the way to the broker, which can be cut, or held up: then nothing comes back.
type wire struct {
	mu    sync.Mutex
	held  chan struct{} // guarded by mu; what comes back waits for its closing
	conns []net.Conn    // guarded by mu
	dead  bool          // guarded by mu
}

// wired makes a wire to the broker of an address, and the address that leads over it.
func wired(t *testing.T, address string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	to := u.Host
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = door.Addr().String()
	w := &wire{}
	var copies sync.WaitGroup
	copies.Go(func() {
		for {
			from, err := door.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil || !w.keep(from, server) {
				_ = from.Close() // nobody is there
				continue
			}
			copies.Go(func() { w.pass(server, from) })
			copies.Go(func() { w.pass(from, server) })
		}
	})
	t.Cleanup(func() {
		_ = door.Close() // ends the loop
		w.cut()
		copies.Wait()
	})
	return w, u.String()
}

func (w *wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, conns...)
	if w.dead {
		for _, c := range conns {
			_ = c.Close() // nobody is there
		}
	}
	return !w.dead
}

func (w *wire) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		held := w.held
		w.mu.Unlock()
		if held != nil {
			<-held
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
}

// hold keeps back all that is said from now on, in both directions.
func (w *wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = make(chan struct{})
	}
}

// cut ends every connection and lets no new one through, as when a server dies.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for _, c := range w.conns {
		_ = c.Close() // what is cut is cut
	}
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// overWire is a desk whose way to the broker can be cut. The site's own way cannot.
func (s *site) overWire() *wire {
	w, address := wired(s.t, s.amqp)
	s.Desk = s.desk(func(c *Config) {
		c.Broker.URL, c.Broker.ConfirmTimeout, c.Broker.CallTimeout = address, time.Second, 3*time.Second
	})
	return w
}

// runs carries out a plan, and something when so many are done.
func (s *site) runs(p *Plan, after int64, then func()) *Receipt {
	s.t.Helper()
	r, err := s.Run(s.ctx, p, "because", func(p Progress) {
		if p.Settled() == after {
			then()
		}
	})
	require.NoError(s.t, err)
	require.Equal(s.t, r.Planned, r.Done+r.Changed+r.Absent+r.Failed+r.Unknown+r.Left, "each is counted once")
	return r
}

// TestARunEndsWhenTheBrokerGoesAway: with the first that it cannot answer, and what was
// done is what the queues and the rows say.
func TestARunEndsWhenTheBrokerGoesAway(t *testing.T) {
	t.Parallel()
	for _, do := range []string{DoRequeue, DoDiscard, DoMove} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			s.queue("parked", nil)
			s.letters(s.expired(5)...)
			w := s.overWire()
			p, err := s.Plan(s.ctx, Order{Do: do, Letters: s.snapshot().Letters, Key: "parked"})
			require.NoError(t, err)
			r := s.runs(p, 2, w.cut)
			require.Contains(t, r.Stopped, "not connected to the message broker")
			require.Equal(t, []int{2, 0, 3, -1}, []int{r.Done, r.Failed, r.Unknown + r.Left, r.After})
			require.LessOrEqual(t, r.Unknown, 1, "at most the one that was in hand")
			require.Empty(t, r.Errors)
			s.becomes(message.QueueDeadLetter, 3)
			sent := map[string]int{DoRequeue: s.ready(requests), DoMove: s.ready("parked"), DoDiscard: 2}[do]
			require.Equal(t, 2, sent)
			if do == DoRequeue {
				require.Equal(t, 2+r.Unknown, s.count(`select count(*) from execution where status = 'requested'`))
			}
			all, err := s.Spool()
			require.NoError(t, err)
			require.LessOrEqual(t, all[0].Undoable(), 2+r.Unknown, "what stayed is not put back")
		})
	}
}

// TestALetterInHandWhenTheBrokerFallsSilentIsUnknown: its row is reset, and whether its
// request arrived nobody knows. The same again only sends it.
func TestALetterInHandWhenTheBrokerFallsSilentIsUnknown(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(4)...)
	w := s.overWire()
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	r := s.runs(p, 1, w.hold)
	require.Contains(t, r.Stopped, "it was asked and has not answered")
	require.Equal(t, []int{1, 0, 1, 2}, []int{r.Done, r.Failed, r.Unknown, r.Left})
	w.cut()
	s.becomes(message.QueueDeadLetter, 3)
	require.Equal(t, 2, s.count(`select count(*) from execution where status = 'requested'`))

	s.Desk = s.desk()
	r = s.run(Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.Equal(t, []int{3, 0}, []int{r.Done, r.After})
	require.Equal(t, 4, s.count(`select count(*) from audit_event where event_type like 'dlq.%'`), "each was reset once")
	require.Len(t, s.requested(), 4)
}

// TestADrainEndsWhenTheBrokerGoesAway: copies of what did not leave are no copies of
// what left.
func TestADrainEndsWhenTheBrokerGoesAway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cut", "hold"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			s.letters(s.expired(250)...)
			w := s.overWire()
			p, err := s.Plan(s.ctx, Order{Do: DoPurge})
			require.NoError(t, err)
			then := w.cut
			if how == "hold" {
				then = w.hold
			}
			r := s.runs(p, 100, then)
			require.Contains(t, r.Stopped, "not connected to the message broker")
			require.Equal(t, []int{100, 0, 0}, []int{r.Done, r.Failed, r.Absent})
			w.cut()
			all, err := s.Spool()
			require.NoError(t, err)
			require.Equal(t, r.Done+r.Unknown, all[0].Undoable())
			s.becomes(message.QueueDeadLetter, 150)
		})
	}
}
