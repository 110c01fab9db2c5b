package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Log passes log lines on to a writer, and never fails or waits for it: a service goes on although its log has no
// reader, a slow one or a full disk. Lines that the writer refuses, or that exceed LogBuffer while it is busy, are
// dropped and counted; when it works again, a line says how many. A Log is safe for concurrent use.
type Log struct {
	to      io.Writer
	dropped func(lines int64) // reports the count as a line; set by NewLogger

	mu      sync.Mutex
	waiting bytes.Buffer // guarded by mu
	lost    int64        // lines that no line has reported yet; guarded by mu
	closed  bool         // guarded by mu

	wake chan struct{}
	done chan struct{} // closed when the goroutine has ended
}

// LogBuffer is how many bytes wait for a writer that is busy.
const LogBuffer = 1 << 20

// linesDropped counts the dropped lines of this process.
var linesDropped atomic.Int64

// NewLog starts a Log; Close ends it.
func NewLog(to io.Writer) *Log {
	l := &Log{to: to, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

// Write takes whole lines. It never fails.
func (l *Log) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.waiting.Len()+len(lines) > LogBuffer {
		l.loseLocked(lines)
	} else {
		l.waiting.Write(lines)
	}
	l.rouse()
	return len(lines), nil
}

// Close writes what waits, for a second at most.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.rouse()
	select {
	case <-l.done:
	case <-time.After(time.Second):
	}
}

func (l *Log) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Log) loseLocked(lines []byte) {
	n := int64(bytes.Count(lines, []byte("\n")))
	l.lost += n
	linesDropped.Add(n)
}

func (l *Log) run() {
	defer close(l.done)
	for range l.wake {
		for {
			l.mu.Lock()
			lines := bytes.Clone(l.waiting.Bytes())
			l.waiting.Reset()
			closed := l.closed
			l.mu.Unlock()
			if len(lines) == 0 {
				if closed {
					return
				}
				break
			}
			n, err := l.to.Write(lines)
			l.mu.Lock()
			var lost int64
			if err != nil {
				l.loseLocked(lines[min(max(n, 0), len(lines)):])
			} else {
				lost, l.lost = l.lost, 0
			}
			l.mu.Unlock()
			if lost > 0 && l.dropped != nil {
				l.dropped(lost)
			}
		}
	}
}
