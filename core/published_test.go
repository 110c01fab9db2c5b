package core_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// publishedLines are the log lines of the published documents, with the part of each
// that the program writes word for word and the file that writes it. An empty file marks
// a line that the program does not write, with the reason.
var publishedLines = []struct{ line, constant, file, why string }{
	{
		line: "INFO: Starting worker heartbeat monitor...", constant: "Starting worker heartbeat monitor...",
		file: "core/liveness/heartbeats.go",
	},
	{
		line:     "INFO: Worker heartbeat monitor started (check interval: 60s, staleness threshold: 90s)",
		constant: "Worker heartbeat monitor started (check interval: %s, staleness threshold: %s)",
		file:     "core/liveness/heartbeats.go",
	},
	{
		line:     "WARN: Worker sensor-77cd23b50478 (ID: 27) heartbeat is stale (1289s old), marking as inactive",
		constant: "Worker %s (ID: %d) heartbeat is stale (%.0fs old), marking as inactive",
		file:     "core/liveness/heartbeats.go",
	},
	{
		line:     "INFO: Deactivated 5 worker(s) with stale heartbeats",
		constant: "Deactivated %d worker(s) with stale heartbeats", file: "core/liveness/heartbeats.go",
	},
	{
		line:     "ERROR: Failed to deactivate worker worker-123 (stale heartbeat): <error details>",
		constant: "Failed to deactivate worker %s (stale heartbeat): %v", file: "core/liveness/heartbeats.go",
	},
	{
		line:     "ERROR: Failed to query active workers for heartbeat check: <error details>",
		constant: "Failed to query active workers for heartbeat check", file: "core/liveness/heartbeats.go",
	},
	{
		line: "Error checking stale executions: {}", constant: "Error checking stale executions",
		file: "core/recovery/rescuer.go",
	},
	{
		line:     "Execution {} has been scheduled for too long, marking as failed",
		constant: "Execution %d has been scheduled for too long, marking as failed", file: "core/scheduler/log.go",
	},
	{
		line: "Received dead letter for execution {}", constant: "Received dead letter for execution %d",
		file: "core/deadletter/handler.go",
	},
	{
		line: "Error checking worker health: {}", constant: "Error checking worker health",
		file: "core/liveness/probes.go",
	},
	{line: "Worker {} failed health check", constant: "Worker %s failed health check", file: "core/liveness/probes.go"},
	{
		line: "Worker shutting down gracefully...", constant: "Worker shutting down gracefully...",
		file: "cmd/attune-executor/worker.go",
	},
	{line: "Worker shutdown complete", constant: "Worker shutdown complete", file: "cmd/attune-executor/worker.go"},
	{
		line: "Enqueued exec {} at position {} for action {}", constant: "Enqueued exec %d at position %d for action %d",
		file: "core/scheduler/log.go",
	},
	{
		line: "Error: Queue full (max length: 10000)", constant: "Queue full (max length: %d)",
		file: "core/scheduler/enter.go",
	},
	{
		line:     "Execution timeout: worker did not pick up task within timeout",
		constant: "Execution timeout: worker did not pick up task within %d seconds",
		file:     "core/scheduler/unstarted.go",
	},
	{
		line: "Message expired in worker queue (worker unavailable)", constant: "Message expired in worker queue",
		why: "two documents name this error differently; the other one, Worker queue TTL expired, is used",
	},
	{line: "Worker queue TTL expired", constant: "Worker queue TTL expired", file: "core/deadletter/step.go"},
	{line: "no workers available", constant: "no workers available", file: "core/placement/explain.go"},
}

// Operators search logs and results for the published lines: each is written by one
// file, or by none for a reason.
func TestPublishedLinesAreWritten(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	for _, top := range []string{".", "../cmd"} {
		require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			sources[filepath.Join("core", path)] = string(raw)
			return err
		}))
	}
	for _, p := range publishedLines {
		if p.file != "" {
			require.Contains(t, sources[p.file], `"`+p.constant, "%s is to write %q", p.file, p.line)
			continue
		}
		require.NotEmpty(t, p.why)
		for path, text := range sources {
			require.NotContains(t, text, p.constant, "%s writes %q although: %s", path, p.line, p.why)
		}
	}
}
