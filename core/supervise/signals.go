package supervise

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reaction is what a signal does to a program.
type reaction int

const (
	stops   reaction = 1 + iota // stop in order; a repetition stops at once
	dumps                       // write the stacks of all goroutines to standard error, then as stops
	limits                      // stop in order; the kernel repeats it, so a repetition has no effect
	nothing                     // only prevents the default, which is death
)

// reactions are the signals that would end a process that runs something, and what they do instead, to services
// (serve, worker) and to commands. A signal of no entry keeps its default: the Go runtime ignores USR1, USR2, ALRM,
// VTALRM, PROF, IO, PWR and XFSZ (the write fails), and ABRT, SYS, TRAP, ILL, BUS, FPE and SEGV are crashes. All are
// caught and none is ignored, because child processes inherit an ignored signal, but not a caught one.
var reactions = map[os.Signal]struct{ service, command reaction }{
	syscall.SIGHUP:  {stops, stops}, // the terminal was closed
	syscall.SIGINT:  {stops, stops},
	syscall.SIGTERM: {stops, stops},
	syscall.SIGQUIT: {dumps, stops}, // the default would leave a dashboard's terminal raw; a repetition has it
	syscall.SIGXCPU: {limits, 0},
}

// Once a program catches SIGPIPE, a write to a connection that a server has closed raises it too. So it means something
// only if standard output or error has no reader any more.

// OutliveLog lets a service go on when its log has no reader, from before its first line to after its last.
func OutliveLog() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// reactionsOf returns the signals with a reaction. A SIGHUP that was ignored at the start (nohup) stays without effect.
func reactionsOf(service bool) map[os.Signal]reaction {
	does := map[os.Signal]reaction{}
	for sig, of := range reactions {
		what := of.command
		if service {
			what = of.service
		}
		if sig == syscall.SIGHUP && signal.Ignored(sig) {
			what = nothing
		}
		if what != 0 {
			does[sig] = what
		}
	}
	return does
}

// sameRequest is how long after a signal another one is the same request: timeout(1), make, shells and closed
// terminals signal a process and then its whole group.
const sameRequest = 300 * time.Millisecond

// Interruptible returns a context for a command that the first request to stop ends. A second one ends the process.
func Interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	does := reactionsOf(false)
	maps.DeleteFunc(does, func(_ os.Signal, what reaction) bool { return what == nothing })
	unread, unreadable := context.WithCancel(parent)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case <-unread.Done():
				return
			case <-pipes:
				if outputUnread() {
					unreadable()
				}
			}
		}
	}()
	ctx, stop := signal.NotifyContext(unread, slices.Collect(maps.Keys(does))...)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameRequest, stop) })
	return ctx, func() {
		stop()
		unreadable()
		signal.Stop(pipes)
	}
}

// outputUnread reports whether standard output or error has no reader any more.
func outputUnread() bool {
	streams := []unix.PollFd{{Fd: 1, Events: unix.POLLOUT}, {Fd: 2, Events: unix.POLLOUT}}
	if _, err := unix.Poll(streams, 0); err != nil {
		return false // interrupted; the next write raises the signal again
	}
	return (streams[0].Revents|streams[1].Revents)&(unix.POLLERR|unix.POLLHUP) != 0
}

// NoReader reports whether an error says that the reader of standard output has gone, as head does. A command then
// ends without a word, as if the signal had ended it.
func NoReader(err error) bool {
	file, ok := errors.AsType[*fs.PathError](err)
	return ok && errors.Is(file, syscall.EPIPE)
}

// requests passes on the requests to stop of a service until release is called.
func requests(ctx context.Context, logger *slog.Logger) (stop <-chan struct{}, release func()) {
	does := reactionsOf(true)
	signals, asked, ended := make(chan os.Signal, 8), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, slices.Collect(maps.Keys(does))...)
	go func() {
		first := true
		for {
			select {
			case <-ended:
				return
			case sig := <-signals:
				if does[sig] == nothing || does[sig] == limits && !first {
					continue
				}
				first = false
				logger.InfoContext(ctx, "Signal received", "signal", sig.String())
				if does[sig] == dumps {
					dump()
				}
				select {
				case asked <- struct{}{}:
				case <-ended:
					return
				}
			}
		}
	}()
	return asked, func() {
		signal.Stop(signals)
		close(ended)
	}
}

// dumpTimeout bounds the wait for a reader of standard error.
const dumpTimeout = 2 * time.Second

// dump writes the stacks of all goroutines to standard error, as the runtime does for a signal that nothing catches.
func dump() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2) // without a reader there is no dump
	}()
	select {
	case <-done:
	case <-time.After(dumpTimeout):
	}
}
