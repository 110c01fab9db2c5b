package devstack

import (
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

// Config says where a stack lives and how its servers behave.
type Config struct {
	// Detached lets the servers outlive the caller. Without it they die with
	// the process that called Up.
	Detached bool

	// Dir is the stack's folder. It is created when missing. See Stack.Dir for
	// the folder that is really used.
	Dir string

	// Durable leaves PostgreSQL's own durability settings alone. Without it the
	// server never waits for the disk: fast, and lost with the machine.
	Durable bool

	// Logger receives what happens while servers start and stop. Nil is silent.
	Logger *slog.Logger

	// MaxConnections is PostgreSQL's max_connections.
	MaxConnections int

	// StartTimeout bounds the start of each server.
	StartTimeout time.Duration

	// StatsInterval is how often the broker refreshes its management
	// statistics. Zero keeps the broker's five seconds; tests that read
	// statistics use 250 ms.
	StatsInterval time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = MaxConnectionsDefault
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = StartTimeoutDefault
	}
	return c
}

func (c Config) validate() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("devstack: Dir is empty")
	}
	abs, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("resolve the stack's folder %s: %w", c.Dir, err)
	}
	c.Dir = abs
	return c, nil
}
