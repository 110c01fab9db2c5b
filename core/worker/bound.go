package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/worker/output"
)

const (
	// largeOutput is from how many bytes of output the results of executions are made and
	// written one after another: each takes several times its size meanwhile.
	largeOutput = 1 << 20
	// turnTimeout bounds the wait for a turn: without a database no end is written, and
	// later ends must not wait for that.
	turnTimeout = 15 * time.Second
)

// turn waits until a result may be made of this much output. The finisher calls done when
// the result is written.
func (r *runner) turn(size int) (done func()) {
	if size < largeOutput {
		return func() {}
	}
	timer := time.NewTimer(turnTimeout)
	defer timer.Stop()
	select {
	case r.turns <- struct{}{}:
		return func() { <-r.turns }
	case <-timer.C:
		return func() {}
	}
}

// besides is the room for the names, numbers and flags of a result.
const besides = 1 << 10

// boundData leaves out data that Config.MaxResultBytes has no room for, and says so
// in the report. The output that it was read from is kept as text.
func (r *runner) boundData(rep *report) {
	room, size := r.cfg.MaxResultBytes-besides, int64(len(rep.Data))
	if size <= room/2 || size+int64(len(queueAck(rep.Data))) <= room {
		return
	}
	rep.Data = nil
	rep.OutputError = fmt.Sprintf("the data has %d bytes as JSON and was left out: a result may have %d",
		size, r.cfg.MaxResultBytes)
}

// boundTexts cuts the texts of a report where Config.MaxResultBytes has no room for them
// beside the data. Errors come first; standard output and standard error share the rest.
func (r *runner) boundTexts(rep *report) {
	room := r.cfg.MaxResultBytes - besides - int64(len(rep.Data)+len(rep.QueueAck))
	cut := func(text *string, bytes int64) bool {
		fitting, size := output.Fit(*text, max(bytes, 0))
		lost := len(fitting) < len(*text)
		room -= size
		*text = fitting
		return lost
	}
	lost := cut(&rep.Error, room/2)
	cut(&rep.OutputError, room/2)
	_, wanted := output.Fit(rep.Stdout, room)
	lost = cut(&rep.StderrLog, max(room-wanted, room/2)) || lost
	rep.StderrTruncated = rep.StderrTruncated || lost
	rep.StdoutTruncated = cut(&rep.Stdout, room) || rep.StdoutTruncated
}

// encoded is a report as JSON, in which characters of HTML stay as they are.
func encoded(rep report) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(rep.Stdout) + len(rep.StderrLog) + len(rep.Data) + len(rep.Error) + besides)
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(rep); err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
