package api

import (
	"container/list"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Rates limits how often clients send requests; 0 is no limit.
type Rates struct {
	// PerToken is how many requests a token may make in a second.
	PerToken int
	// Unauthorized is how many requests without a valid token an address may make in a second.
	Unauthorized int
}

const (
	// burst is for how many seconds of its rate a client may send at once.
	burst = 2
	// maxClients bounds the remembered clients. The client that has been silent the longest is forgotten first.
	maxClients = 4096
)

// limiter applies Rates. Guesses of a token are slow because an address that has used up its requests without a valid
// token is refused with a valid one too, unless it has used that token before.
type limiter struct {
	rates Rates

	mu      sync.Mutex
	clients map[string]*list.Element // of recent, by name
	recent  list.List                // of *client, the last request first
}

// client is a token, an address, or a token at an address.
type client struct {
	name string
	left float64 // requests that it may send now
	at   time.Time
}

func newLimiter(rates Rates) *limiter {
	return &limiter{rates: rates, clients: map[string]*list.Element{}}
}

// admit counts a request. token names its valid token and is empty if it has none; requests that are not metered do
// not count for their token. The result is 0 for an admitted request, else the time until the client may try again.
func (l *limiter) admit(address, token string, metered bool, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	address = network(address)
	if token == "" {
		return l.take(address, l.rates.Unauthorized, 1, now)
	}
	if l.rates.Unauthorized > 0 {
		pair := token + " at " + address
		if _, used := l.clients[pair]; !used {
			if wait := l.take(address, l.rates.Unauthorized, 0, now); wait > 0 {
				return wait
			}
		}
		l.find(pair, 0, now)
	}
	if !metered {
		return 0
	}
	return l.take(token, l.rates.PerToken, 1, now)
}

// take counts requests of a client against its rate. With 0 requests it only checks that the client may send one.
func (l *limiter) take(name string, rate int, requests float64, now time.Time) time.Duration {
	if rate <= 0 {
		return 0
	}
	c := l.find(name, float64(burst*rate), now)
	c.left = min(c.left+now.Sub(c.at).Seconds()*float64(rate), float64(burst*rate))
	c.at = now
	if c.left < 1 {
		return time.Duration((1 - c.left) / float64(rate) * float64(time.Second))
	}
	c.left -= requests
	return 0
}

// find returns a client as the most recent one; a new one may send this many requests.
func (l *limiter) find(name string, left float64, now time.Time) *client {
	if e, ok := l.clients[name]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*client) //nolint:errcheck // the list has only clients
	}
	if l.recent.Len() >= maxClients {
		silent := l.recent.Back()
		delete(l.clients, l.recent.Remove(silent).(*client).name) //nolint:errcheck // as above
	}
	c := &client{name: name, left: left, at: now}
	l.clients[name] = l.recent.PushFront(c)
	return c
}

// network is the address of a client without its port. An IPv6 address is its /64, because one client has all of it.
func network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}

// tooManyError refuses a request of a client that exceeds its rate.
type tooManyError struct{ wait time.Duration }

// Error says when to try again.
func (e *tooManyError) Error() string {
	return fmt.Sprintf("too many requests: try again in %d s", e.seconds())
}

func (e *tooManyError) seconds() int { return max(int(math.Ceil(e.wait.Seconds())), 1) }

// limit counts a request and refuses it if its client exceeds its rate. token names its valid token and is empty if
// it has none.
func (s *Server) limit(r *http.Request, token string, metered bool) error {
	wait := s.limiter.admit(r.RemoteAddr, token, metered, time.Now())
	if wait == 0 {
		return nil
	}
	if skipped, ok := s.limited.next(time.Now()); ok {
		s.deps.Logger.WarnContext(r.Context(), "A client exceeds its rate of requests", "client", r.RemoteAddr,
			"token", token, "path", r.URL.Path, "skipped", skipped)
	}
	return &tooManyError{wait}
}

// retryAfter sets the time after which the client may repeat a refused request.
func retryAfter(w http.ResponseWriter, code int, err error) {
	switch limited, ok := err.(*tooManyError); { //nolint:errorlint // limit returns it unwrapped
	case ok:
		w.Header().Set("Retry-After", strconv.Itoa(limited.seconds()))
	case code == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
}
