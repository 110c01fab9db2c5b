package liveness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/store"
)

// Limits of one request to a worker's health endpoint.
const (
	endpointTimeout = 2 * time.Second
	endpointBody    = 64 << 10
)

// endpointResult is the result of one request to a worker's health endpoint.
type endpointResult struct {
	took time.Duration
	// answered is true when an HTTP response came, whatever its status.
	answered bool
	err      string // what is wrong, for users; empty if nothing is
}

// newClient makes the client for health endpoints: it uses no proxy, keeps few connections, follows no redirect, and
// connects only to the worker's own host or to one of the others. The workers' login writes the addresses, and the
// engine must not fetch for it what only the engine can reach.
func newClient(others []string) *http.Client {
	transport := &http.Transport{
		MaxIdleConns: 64, MaxIdleConnsPerHost: 1, IdleConnTimeout: 2 * time.Minute,
		MaxResponseHeaderBytes: endpointBody,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			own, _ := ctx.Value(ownHost{}).(string)
			targets, err := permitted(ctx, host, own, slices.Contains(others, host))
			for _, target := range targets {
				var conn net.Conn
				conn, err = (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(target.String(), port))
				if err == nil {
					return conn, nil
				}
			}
			return nil, err
		},
	}
	return &http.Client{
		Transport: transport, Timeout: endpointTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ownHost is the key of the worker's host in a context.
type ownHost struct{}

var errElsewhere = errors.New("it is not at the worker's own host: set worker.host, or executor.health.endpoint_hosts")

// permitted returns the addresses of a host that are also addresses of the worker's own host. Loopback is its own if it
// runs on this machine. Link-local addresses, where clouds have their metadata, are never.
func permitted(ctx context.Context, host, own string, listed bool) ([]netip.Addr, error) {
	targets, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || listed {
		return targets, err
	}
	var home []netip.Addr
	if own != "" {
		home, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", own) // an unknown host has no addresses
	}
	here, _ := os.Hostname()
	local := own != "" && strings.EqualFold(own, here)
	for i := range home {
		home[i] = home[i].Unmap()
		local = local || home[i].IsLoopback()
	}
	targets = slices.DeleteFunc(targets, func(a netip.Addr) bool {
		a = a.Unmap()
		return a.IsLinkLocalUnicast() || !slices.Contains(home, a) && !(local && a.IsLoopback())
	})
	if len(targets) == 0 {
		return nil, errElsewhere
	}
	return targets, nil
}

func web(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// requestEndpoint requests the health endpoint of a worker. A response that names another worker id
// comes from another program.
func requestEndpoint(ctx context.Context, client *http.Client, row store.FindProbedRow) *endpointResult {
	begin := time.Now()
	result := &endpointResult{}
	result.err = result.request(context.WithValue(ctx, ownHost{}, row.Host), client, row.HealthUrl, row.ID)
	result.took = time.Since(begin)
	return result
}

func (l *endpointResult) request(ctx context.Context, client *http.Client, address string, worker int64) string {
	target, err := url.Parse(address)
	if err != nil || !web(target) {
		return "is no http or https address"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return "is no http or https address"
	}
	response, err := client.Do(request)
	if err != nil {
		return "does not answer (" + short(err) + ")"
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, endpointBody+1))
	if err != nil {
		return "does not answer to the end (" + short(err) + ")"
	}
	if len(body) > endpointBody {
		l.answered = true
		return fmt.Sprintf("answers with more than %d bytes", endpointBody)
	}
	var said struct {
		Worker int64 `json:"worker_id"`
	}
	if json.Unmarshal(body, &said) == nil && said.Worker != 0 && said.Worker != worker {
		return fmt.Sprintf("is that of worker %d", said.Worker)
	}
	l.answered = true
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Sprintf("says %d", response.StatusCode)
	}
	return ""
}

// short is the innermost part of an error; the outer parts are always the same.
func short(err error) string {
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return "nothing within " + endpointTimeout.String()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}
