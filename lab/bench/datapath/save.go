package datapath

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Prepare writes the settings of a measurement into a private server: memory for the largest queue, and no
// checkpoint in the middle. Durability stays the same. The server must restart afterwards.
func Prepare(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to prepare the server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is pending on it
	for _, sql := range []string{
		"ALTER SYSTEM SET shared_buffers = '1GB'", "ALTER SYSTEM SET max_wal_size = '8GB'",
		"ALTER SYSTEM SET checkpoint_timeout = '30min'", "CHECKPOINT",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("prepare the server: %s: %w", sql, err)
		}
	}
	return nil
}

// FileReport is the file of a report.
const FileReport = "datapath.json"

// Save writes the report into a folder.
func (r *Report) Save(dir string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // world-readable
		return fmt.Errorf("create the folder of the report: %w", err)
	}
	err = os.WriteFile(filepath.Join(dir, FileReport), append(raw, '\n'), 0o644) //nolint:gosec // world-readable
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
