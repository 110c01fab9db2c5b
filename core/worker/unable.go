package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/worker/deliver"
	"github.com/attune-go/attune/core/worker/process"
)

// errNoFolder says that the folder of an execution could not be created.
var errNoFolder = errors.New("create a folder for temporary files")

// What fails the start of every process, and what may also be the fault of one execution: its parameters may be larger
// than the room that is left.
var (
	workerFaults = []error{errNoFolder, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}
	sharedFaults = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}
)

// isWorkerFault reports whether an error before the start of a process is the worker's and not the action's.
func (r *runner) isWorkerFault(ctx context.Context, err error) bool {
	among := func(faults []error) bool {
		for _, fault := range faults {
			if errors.Is(err, fault) {
				return true
			}
		}
		return false
	}
	return among(workerFaults) || among(sharedFaults) && r.tryStart(ctx) != nil
}

// trialSize is the size of the file that tryStart writes.
const trialSize = 64 << 10

// tryStart starts a process as actions are started. It fails where each action would.
func (r *runner) tryStart(ctx context.Context) error {
	folder, remove, err := r.separation.folder()
	if err != nil {
		return err
	}
	defer remove()
	if _, _, err := deliver.File(folder, make([]byte, trialSize)); err != nil {
		return err
	}
	if err := r.separation.own(folder); err != nil {
		return err
	}
	outcome, err := process.Run(ctx, process.Command{
		Args: []string{"/bin/sh", "-c", ":"}, Dir: folder, Env: r.separation.environment(folder),
		Grace: r.cfg.KillGrace, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Guard: r.guard, Limits: r.separation.limits, User: r.separation.user,
	})
	if err == nil && outcome.ExitCode != 0 {
		err = fmt.Errorf("a shell ended with code %d", outcome.ExitCode)
	}
	return err
}

// Pauses between the trials of a worker that cannot start processes.
const (
	trialFirst   = time.Second
	trialLongest = 10 * time.Second
	trialAfresh  = time.Minute // of work without trouble, after which the pauses begin anew
)

// ability says whether this worker can start processes. While it cannot, it is out of service: its status is error,
// its health names the reason, and it consumes no dispatches. It tries until it can.
type ability struct {
	try    func(ctx context.Context) error
	member *membership
	wake   func() // writes the status at once
	logger *slog.Logger

	mu    sync.Mutex
	since time.Time     // zero while it can; guarded by mu
	next  time.Time     // of the next trial; guarded by mu
	until time.Time     // when it last recovered; guarded by mu
	pause time.Duration // before the next trial; guarded by mu
}

// lost takes the worker out of service.
func (a *ability) lost(ctx context.Context, cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.since.IsZero() {
		return
	}
	a.since = time.Now()
	if a.pause == 0 || a.since.Sub(a.until) > trialAfresh {
		a.pause = trialFirst
	}
	a.next = a.since.Add(a.pause)
	a.member.setUnable("cannot start actions: " + cause.Error())
	a.logger.ErrorContext(ctx, "Worker cannot start actions and takes no work until it can", "worker_id", a.member.id,
		"error", cause)
	a.wake()
}

// tick tries again when it is time.
func (a *ability) tick(ctx context.Context) error {
	a.mu.Lock()
	due := !a.since.IsZero() && !time.Now().Before(a.next)
	a.mu.Unlock()
	if !due {
		return nil
	}
	err := a.try(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pause = min(2*a.pause, trialLongest)
	if err != nil {
		a.next = time.Now().Add(a.pause)
		a.logger.DebugContext(ctx, "Worker still cannot start actions", "worker_id", a.member.id, "error", err)
		return nil
	}
	a.logger.InfoContext(ctx, "Worker can start actions again", "worker_id", a.member.id,
		"after", time.Since(a.since).Round(time.Millisecond))
	a.since, a.until = time.Time{}, time.Now()
	a.member.setUnable("")
	return nil
}

// busyFor is how long the start of a program is repeated that another process is writing.
const busyFor = 10 * time.Second

// startRepeating runs a command, and repeats its start while the program is being written.
func startRepeating(ctx context.Context, command process.Command) (process.Outcome, error) {
	begin := time.Now()
	for pause := retryFirst; ; pause = min(2*pause, time.Second) {
		outcome, err := process.Run(ctx, command)
		if !errors.Is(err, syscall.ETXTBSY) || time.Since(begin) > busyFor || !supervise.Sleep(ctx, pause) {
			return outcome, err
		}
	}
}
