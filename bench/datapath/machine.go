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
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/bench"
)

// Machine says where figures come from.
type Machine struct {
	CPUs       int               `json:"cpus"`
	Model      string            `json:"model,omitempty"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`     // of PostgreSQL
	FlushMicro float64           `json:"flush_micros"` // one 8 kB write with fdatasync, median
	Commit     string            `json:"commit,omitempty"`
}

// settings of PostgreSQL that figures depend on.
var settings = []string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size",
	"checkpoint_timeout", "commit_delay", "autovacuum", "jit", "track_io_timing", "shared_preload_libraries",
}

func (s *server) machine(ctx context.Context) (m Machine, err error) {
	m = Machine{CPUs: runtime.NumCPU(), Model: cpuModel(), Go: runtime.Version(), Settings: map[string]string{},
		Commit: commit()}
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
		return "" // not on this system
	}
	for l := range bytes.SplitSeq(raw, []byte("\n")) {
		if name, value, ok := bytes.Cut(l, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// commit is what the program was built from.
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

// flushTime measures the disk: the median of writing one page and waiting for
// it.
func flushTime(dir string) (micros float64, err error) {
	file, err := os.CreateTemp(dir, "flush-*")
	if err != nil {
		return 0, fmt.Errorf("make a file to measure flushes: %w", err)
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

// quantile is the q-th quantile, 0 of nothing.
func quantile[T int | time.Duration | float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// burned is the CPU time spent until now, by whom. All zero where the system
// does not say.
type burned struct {
	own, postgres, all time.Duration
	at                 time.Time
}

func ticks(n int64) time.Duration { return time.Duration(n) * bench.Tick }

// burned reads the CPU time of this process, of the server and of the machine.
func (s *server) burned() burned {
	b := burned{at: time.Now(), all: bench.MachineTime()}
	b.own, _, _ = processTime(os.Getpid())
	postmaster := s.postmaster()
	own, reaped, _ := processTime(postmaster)
	b.postgres = own + reaped
	for _, pid := range children(postmaster) {
		own, reaped, _ := processTime(pid)
		b.postgres += own + reaped
	}
	return b
}

// postmaster is the server's first process, 0 when it is not on this machine.
func (s *server) postmaster() int {
	_, _, parent := processTime(int(s.admin.PgConn().PID()))
	return parent
}

// processTime reads one process: its own time, that of children it has waited
// for, and its parent. Zero when it is gone.
func processTime(pid int) (own, reaped time.Duration, parent int) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, 0
	}
	// The name in parentheses may hold anything.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 15 {
		return 0, 0, 0
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // the system writes numbers
		return n
	}
	return ticks(number(11) + number(12)), ticks(number(13) + number(14)), int(number(1))
}

func children(parent int) (pids []int) {
	if parent == 0 {
		return nil
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return nil
	}
	for field := range strings.FieldsSeq(string(raw)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// load is what was spent between two moments.
type load struct {
	own, postgres, foreign time.Duration
	elapsed                time.Duration
}

func (b burned) since(before burned) load {
	l := load{own: b.own - before.own, postgres: b.postgres - before.postgres, elapsed: b.at.Sub(before.at)}
	l.foreign = max(b.all-before.all-l.own-l.postgres, 0)
	return l
}
