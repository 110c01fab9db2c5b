package worker

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/supervise"
)

// TakenError refuses a start: a living process has the worker's name.
type TakenError struct {
	Name, Host string
	Worker     int64
	PID        int           // 0 if its program does not announce it
	Silent     time.Duration // since its newest heartbeat, by the database's clock
	Stopping   bool
	// Running and Unstarted are its executions.
	Running, Unstarted int64
}

// Error describes the process.
func (e *TakenError) Error() string {
	state := "runs"
	if e.Stopping {
		state = "is stopping"
	}
	return fmt.Sprintf("worker %s %s on host %s%s: its last heartbeat is %s old, and it has %d running and %d "+
		"unstarted executions", e.Name, state, e.Host, pidText(e.PID), e.Silent.Round(time.Second), e.Running,
		e.Unstarted)
}

func pidText(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" as process %d", pid)
}

// processID is capabilities.process: the process that has the worker's name. It is null after an orderly stop.
type processID struct {
	PID int `json:"pid"`
	// Started is when the system started it, and Place the boot and the namespace in which its number counts. They
	// are empty where the system does not say.
	Started string `json:"started,omitempty"`
	Place   string `json:"place,omitempty"`
	// Heartbeat is its pause between heartbeats, in seconds.
	Heartbeat float64 `json:"heartbeat_seconds"`
}

func ownProcess(heartbeat time.Duration) processID {
	p := processID{PID: os.Getpid(), Heartbeat: heartbeat.Seconds()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, linkErr := os.Readlink("/proc/self/ns/pid")
	if err == nil && linkErr == nil {
		p.Place = strings.TrimSpace(string(boot)) + " " + space
		p.Started, _ = startOf(p.PID)
	}
	return p
}

// startOf is when a process started, in ticks since the boot; empty if it has ended. It is false if the system does
// not say.
func startOf(pid int) (ticks string, known bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the name may have blanks
	const state, start = 0, 19
	if len(fields) <= start {
		return "", false
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", true
	}
	return fields[start], true
}

// gone reports that a process of the same boot and namespace has ended. The service manager may hide the processes of
// other users in /proc, but not from signals.
func (p processID) gone() bool {
	if errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) {
		return true
	}
	started, known := startOf(p.PID)
	return known && started != p.Started
}

// claim says whether a new process may have a worker's name.
type claim int

const (
	claimFree   claim = iota // no living process has it
	claimTaken               // a living process has it
	claimUnsure              // the process on this host may have ended: only a missing heartbeat can tell
)

// claim judges the process that has the name. A process that ended without an order leaves its row as it was. On the
// same machine the system knows whether it has ended. A restarted container has the name of its host and other
// processes: if no heartbeat comes for as long as watch says, the process before has ended with its container. On
// another host the process lives until its heartbeat is stale, as for the engine.
func (c Config) claim(was store.ReadIncarnationRow, its *processID, own processID) claim {
	switch {
	case c.Replace, was.ID == 0, was.Deactivated, was.Silent >= c.StaleAfter.Seconds():
		return claimFree
	case stopped(was, its):
		return claimFree
	case its != nil && its.Place != "" && its.Place == own.Place:
		if its.gone() {
			return claimFree
		}
		return claimTaken
	case was.Host == c.Host:
		return claimUnsure
	default:
		return claimTaken
	}
}

// stopped reports an orderly stop.
func stopped(was store.ReadIncarnationRow, its *processID) bool {
	return was.Status == lifecycle.WorkerInactive && !was.Draining && its == nil
}

// The watch of a process that may have ended: its row is read quietReads times without a new heartbeat, which is two
// and a half times its pause between heartbeats.
const (
	quietReads    = 10
	readsPerPause = 4
)

// watchPause is the pause between the reads of a watch. Programs that do not announce their pause between heartbeats
// are stale after three of them.
func (c Config) watchPause(its *processID) time.Duration {
	pause := c.StaleAfter / 3
	if its != nil && its.Heartbeat > 0 {
		pause = min(time.Duration(its.Heartbeat*float64(time.Second)), pause)
	}
	return pause / readsPerPause
}

// takeName registers this process under the worker's name, unless a living process has it.
func (m *membership) takeName(ctx context.Context, cfg Config, params store.EnrolWorkerParams) (store.EnrolWorkerRow,
	error,
) {
	var first *store.ReadIncarnationRow // of a watch
	for reads := 0; ; {
		was, its, err := m.readIncarnation(ctx, cfg.Name)
		if err != nil {
			return store.EnrolWorkerRow{}, err
		}
		verdict := cfg.claim(was, its, m.process)
		if verdict == claimUnsure && reads < quietReads {
			if first == nil {
				m.logger.InfoContext(ctx, "Process with the worker's name may be alive, waiting for its heartbeat",
					"worker", cfg.Name, "worker_id", was.ID, "host", was.Host, "process", pidOf(its),
					"heartbeat_age", seconds(was.Silent).Round(time.Second), "wait", quietReads*cfg.watchPause(its))
				first = &was
			}
			if was.Incarnation == first.Incarnation && sameTime(was.HeartbeatSeen, first.HeartbeatSeen) {
				reads++
				if !supervise.Sleep(ctx, cfg.watchPause(its)) {
					return store.EnrolWorkerRow{}, fmt.Errorf("wait for the name: %w", context.Cause(ctx))
				}
				continue
			}
			verdict = claimTaken
		}
		var work store.CountWorkerWorkRow
		if verdict == claimTaken || cfg.Replace && was.ID != 0 {
			if work, err = m.store.CountWorkerWork(ctx, was.ID); err != nil {
				return store.EnrolWorkerRow{}, fmt.Errorf("count the executions of worker %s: %w", cfg.Name, err)
			}
		}
		if verdict == claimTaken {
			return store.EnrolWorkerRow{}, &TakenError{
				Name: cfg.Name, Host: was.Host, Worker: was.ID, PID: pidOf(its), Silent: seconds(was.Silent),
				Stopping: was.Draining && was.Status == lifecycle.WorkerInactive,
				Running:  work.Running, Unstarted: work.Unstarted,
			}
		}
		params.Before, params.Seen = was.Incarnation, was.HeartbeatSeen
		row, err := m.store.EnrolWorker(ctx, params)
		if errors.Is(err, sql.ErrNoRows) {
			continue // the row has changed since it was read
		}
		if err == nil && cfg.Replace && was.ID != 0 && !stopped(was, its) {
			m.logger.WarnContext(ctx, "Name taken over, the executions that ran there are abandoned", "worker", cfg.Name,
				"worker_id", was.ID, "host", was.Host, "process", pidOf(its),
				"heartbeat_age", seconds(was.Silent).Round(time.Second),
				"abandoned", work.Running, "unstarted", work.Unstarted)
		}
		return row, err
	}
}

// readIncarnation reads the process that has a name; a row without id means that the name is new.
func (m *membership) readIncarnation(ctx context.Context, name string) (
	was store.ReadIncarnationRow, its *processID, err error,
) {
	was, err = m.store.ReadIncarnation(ctx, name)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ReadIncarnationRow{}, nil, nil
	}
	if err != nil {
		return was, nil, fmt.Errorf("read the process of worker %s: %w", name, err)
	}
	if json.Unmarshal(was.Process, &its) != nil {
		its = nil // another program's
	}
	return was, its, nil
}

func pidOf(p *processID) int {
	if p == nil {
		return 0
	}
	return p.PID
}

func sameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// owns reports whether the name still belongs to this process, and ends the worker if it does not. After an error,
// the next heartbeat tells.
func (m *membership) owns(ctx context.Context) bool {
	select {
	case <-m.displaced:
		return false
	default:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	has, err := m.store.HasIncarnation(ctx, m.id, m.incarnation)
	if err != nil || has {
		return true
	}
	m.displace(ctx)
	return false
}

// displace ends the worker, because another process has its name or its row is gone.
func (m *membership) displace(ctx context.Context) {
	m.once.Do(func() {
		by, its, err := m.readIncarnation(ctx, m.name)
		attrs := []any{"worker_id", m.id, "worker", m.name}
		switch {
		case err != nil:
		case by.Incarnation == uuid.Nil:
			attrs = append(attrs, "row", "gone")
		default:
			attrs = append(attrs, "by_host", by.Host, "by_process", pidOf(its))
		}
		m.logger.ErrorContext(ctx, "Worker stops, its row is gone or another process has taken its name", attrs...)
		close(m.displaced)
	})
}
