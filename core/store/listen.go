package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/supervise"
)

// The pauses between attempts to listen again, of which the first follows a loss.
const (
	listenFirst = 200 * time.Millisecond
	listenLast  = 30 * time.Second
)

// Listen calls heard with the payload of every notification on the channels, one after the other,
// until ctx ends. It has a connection of its own, and reconnects after a loss. Notifications sent
// meanwhile are lost, and so are all where a pooler shares connections by transaction. So a
// notification may only speed up work that happens anyway.
func (s *Store) Listen(ctx context.Context, heard func(channel, payload string), channels ...string) {
	pause := listenFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := s.listen(ctx, heard, channels)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > listenLast {
			pause = listenFirst
		}
		s.logger.DebugContext(ctx, "Not listening for notifications for a while", "channels", channels, "again_in",
			pause,
			"error", err)
		if !supervise.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, listenLast)
	}
}

func (s *Store) listen(ctx context.Context, heard func(channel, payload string), channels []string) error {
	cfg := s.pool.Config().ConnConfig
	cfg.RuntimeParams["statement_timeout"] = "0"
	if err := s.cfg.login(ctx, cfg); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing to save on it
	}()
	for _, channel := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return fmt.Errorf("listen to %s: %w", channel, err)
		}
	}
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		heard(notification.Channel, notification.Payload)
	}
}
