package devstack

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
)

// Defaults of Config.
const (
	StartTimeoutDefault   = 90 * time.Second
	StopTimeoutDefault    = 20 * time.Second
	MaxConnectionsDefault = 500
)

// Config configures a stack.
type Config struct {
	// Detached lets the servers outlive the caller. Without it they end with the process that called Up.
	Detached bool

	// Dir is the stack's folder. Up creates it. See Stack.Dir for the folder that is really used.
	Dir string

	// Durable keeps PostgreSQL's own durability settings. Without it the server never waits for the disk: a
	// crash of the machine loses its data.
	Durable bool

	// Logger logs the start and the stop of servers; may be nil.
	Logger *slog.Logger

	// MaxConnections is PostgreSQL's max_connections.
	MaxConnections int

	// StartTimeout bounds the start of each server.
	StartTimeout time.Duration

	// StatsInterval is the interval of the broker's management statistics; zero keeps its five seconds.
	StatsInterval time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("devstack: Dir is empty")
	}
	abs, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("resolve the stack's folder %s: %w", c.Dir, err)
	}
	c.Dir = abs
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.MaxConnections = cmp.Or(c.MaxConnections, MaxConnectionsDefault)
	c.StartTimeout = cmp.Or(c.StartTimeout, StartTimeoutDefault)
	return c, nil
}
