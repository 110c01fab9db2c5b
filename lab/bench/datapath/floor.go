package datapath

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// Floor is the yardstick of the server and the client: a row inserted and updated in a transaction each.
type Floor struct {
	Connections int     `json:"connections"`
	PerSecond   float64 `json:"per_second"`
	Foreign     float64 `json:"foreign_cpu"` // CPUs that other programs used
}

// floor measures the floor on the given number of connections.
func (s *server) floor(ctx context.Context, connections int, lasting time.Duration) (f Floor, err error) {
	at, drop, err := s.fresh(ctx)
	if err != nil {
		return f, err
	}
	defer drop()
	cfg, err := pgxpool.ParseConfig(at)
	if err != nil {
		return f, fmt.Errorf("read the address of the floor's database: %w", err)
	}
	cfg.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return f, fmt.Errorf("open the floor's database: %w", err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, floorTableSQL); err != nil {
		return f, fmt.Errorf("create the floor's table: %w", err)
	}
	counts := make([]int, connections)
	group, groupCtx := errgroup.WithContext(ctx)
	before := s.burned()
	begun := time.Now()
	for i := range counts {
		group.Go(func() error {
			return pool.AcquireFunc(groupCtx, func(conn *pgxpool.Conn) (err error) {
				counts[i], err = insertAndUpdate(groupCtx, conn.Conn(), lasting)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return f, fmt.Errorf("measure the floor: %w", err)
	}
	took := time.Since(begun)
	total := 0
	for _, n := range counts {
		total += n
	}
	spent := s.burned().since(before)
	return Floor{
		Connections: connections, PerSecond: float64(total) / took.Seconds(),
		Foreign: spent.foreign.Seconds() / spent.elapsed.Seconds(),
	}, nil
}

func insertAndUpdate(ctx context.Context, conn *pgx.Conn, lasting time.Duration) (n int, err error) {
	for begun := time.Now(); time.Since(begun) < lasting; n++ {
		var id int64
		if err := conn.QueryRow(ctx, floorInsertSQL, int64(n%10)).Scan(&id); err != nil {
			return n, err
		}
		if _, err := conn.Exec(ctx, floorUpdateSQL, id); err != nil {
			return n, err
		}
	}
	return n, nil
}
