package datapath

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/attune-go/attune/lab/measure"
)

// Machine describes the machine of the figures.
type Machine struct {
	CPUs       int               `json:"cpus"`
	Model      string            `json:"model,omitempty"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`     // of PostgreSQL
	FlushMicro float64           `json:"flush_micros"` // one 8 kB write with fdatasync, median
	Commit     string            `json:"commit,omitempty"`
}

// settings are the settings of PostgreSQL that affect the figures.
var settings = []string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size",
	"checkpoint_timeout", "commit_delay", "autovacuum", "jit", "track_io_timing", "shared_preload_libraries",
}

func (s *server) machine(ctx context.Context) (m Machine, err error) {
	m = Machine{
		CPUs: runtime.NumCPU(), Model: cpuModel(), Go: runtime.Version(), Settings: map[string]string{},
		Commit: commit(),
	}
	for _, name := range settings {
		var value string
		if err := s.admin.QueryRow(ctx, "SELECT coalesce(current_setting($1, true), '')",
			name).Scan(&value); err != nil {
			return m, fmt.Errorf("read the setting %s: %w", name, err)
		}
		m.Settings[name] = value
	}
	if err := s.admin.QueryRow(ctx, "SHOW server_version").Scan(&m.PostgreSQL); err != nil {
		return m, fmt.Errorf("read the version: %w", err)
	}
	var data string
	if err := s.admin.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
		return m, fmt.Errorf("read the data directory: %w", err)
	}
	m.FlushMicro, err = flushTime(filepath.Dir(data))
	return m, err
}

func cpuModel() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "" // unknown on this system
	}
	for l := range bytes.SplitSeq(raw, []byte("\n")) {
		if name, value, ok := bytes.Cut(l, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// commit returns the commit of the program.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = " (modified)"
			}
		}
	}
	return revision + modified
}

// flushTime measures the disk: the median of writing and flushing one page.
func flushTime(dir string) (micros float64, err error) {
	file, err := os.CreateTemp(dir, "flush-*")
	if err != nil {
		return 0, fmt.Errorf("create a file to measure flushes: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	page := make([]byte, 8192)
	var took []time.Duration
	for i := range 201 {
		begun := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil {
			return 0, fmt.Errorf("write to measure flushes: %w", err)
		}
		if err := flush(file); err != nil {
			return 0, fmt.Errorf("flush: %w", err)
		}
		if i > 0 {
			took = append(took, time.Since(begun))
		}
	}
	return float64(quantile(took, 0.5).Nanoseconds()) / 1000, nil
}

// quantile returns the q-th quantile, 0 without values.
func quantile[T int | time.Duration | float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// burned is the CPU time so far, zero if unknown.
type burned struct {
	own, postgres, broker, all time.Duration
	at                         time.Time
}

// burned reads the CPU time of this process, of the server and of the machine.
func (s *server) burned() burned {
	b := burned{at: time.Now(), all: measure.MachineTime()}
	b.own, _, _ = measure.ProcessTime(os.Getpid())
	_, _, postmaster := measure.ProcessTime(int(s.admin.PgConn().PID())) // 0 when the server is on another machine
	b.postgres = measure.TreeTime(postmaster)
	b.broker = measure.TreeTime(s.broker)
	return b
}

// load is the CPU time between two moments.
type load struct {
	own, postgres, broker, foreign time.Duration
	elapsed                        time.Duration
}

func (b burned) since(before burned) load {
	l := load{
		own: b.own - before.own, postgres: b.postgres - before.postgres, broker: b.broker - before.broker,
		elapsed: b.at.Sub(before.at),
	}
	l.foreign = max(b.all-before.all-l.own-l.postgres-l.broker, 0)
	return l
}
