package datapath

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/core/supervise"
)

// delayProxy forwards connections to a server with a delay in both directions, as between sites.
type delayProxy struct {
	listener net.Listener
	target   string
	delay    time.Duration
	meter    *meter // counts what clients ask; may be nil
}

// openDelayProxy starts a proxy and returns the address of the database through it.
func openDelayProxy(
	ctx context.Context, address string, delay time.Duration, m *meter,
) (*delayProxy, string, error) {
	through, err := url.Parse(address)
	if err != nil {
		return nil, "", fmt.Errorf("read the address of the database: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for delayed connections: %w", err)
	}
	f := &delayProxy{listener: listener, target: through.Host, delay: delay, meter: m}
	through.Host = listener.Addr().String()
	go f.accept(context.WithoutCancel(ctx))
	return f, through.String(), nil
}

// close stops accepting. Connections end with their clients.
func (f *delayProxy) close() { _ = f.listener.Close() }

func (f *delayProxy) accept(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.target)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			group, ctx := errgroup.WithContext(ctx)
			from := io.Reader(client)
			if f.meter != nil {
				said, listens := io.Pipe()
				defer func() { _ = listens.Close() }()
				from = io.TeeReader(client, listens)
				go f.meter.listen(said)
			}
			group.Go(func() error { return f.forward(ctx, from, server) })
			group.Go(func() error { return f.forward(ctx, server, client) })
			<-ctx.Done() // one side has ended
			_, _ = client.Close(), server.Close()
			_ = group.Wait()
		}()
	}
}

// forward forwards the bytes of one direction, each piece after the delay.
func (f *delayProxy) forward(ctx context.Context, from io.Reader, to io.Writer) error {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	read := make(chan error, 1)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				select {
				case pieces <- piece{data[:n], time.Now().Add(f.delay)}:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if err != nil {
				read <- err
				return
			}
		}
	}()
	for p := range pieces {
		if !supervise.Sleep(ctx, time.Until(p.due)) {
			continue // the reader ends too
		}
		if _, err := to.Write(p.data); err != nil {
			return err
		}
	}
	return <-read
}
