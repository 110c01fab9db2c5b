package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/worker/output"
)

const (
	// largeOutput is the output size in bytes from which an execution needs room.
	largeOutput = 64 << 10
	// roomForResults bounds the output whose results are being encoded or not yet written: each
	// takes several times its size meanwhile. Larger output is encoded alone.
	roomForResults = 8 << 20
	// roomTimeout bounds the wait for room: without a database no end is written, and later ends
	// must not wait for that.
	roomTimeout = 15 * time.Second
)

// awaitRoom waits until a result of this size may be encoded. The finisher calls done when the
// result is written.
func (r *runner) awaitRoom(size int) (done func()) {
	if size < largeOutput {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), roomTimeout) //nolint:forbidigo // ended work has a result
	defer cancel()
	weight := int64(min(size, roomForResults))
	if r.room.Acquire(ctx, weight) != nil {
		return func() {}
	}
	return func() { r.room.Release(weight) }
}

// overhead is the room for the names, numbers and flags of a result.
const overhead = 1 << 10

// boundData drops data that exceeds Config.MaxResultBytes, and says so in the report. The output of
// which it was parsed is kept as text.
func (r *runner) boundData(rep *report) {
	room, size := r.cfg.MaxResultBytes-overhead, int64(len(rep.Data))
	if size <= room/2 || size+int64(len(queueAck(rep.Data))) <= room {
		return
	}
	rep.Data = nil
	rep.OutputError = fmt.Sprintf("the data has %d bytes as JSON and was left out: a result may have %d",
		size, r.cfg.MaxResultBytes)
}

// boundTexts cuts the texts of a report that exceed Config.MaxResultBytes beside the data. Errors
// come first; standard output and standard error share the rest.
func (r *runner) boundTexts(rep *report) {
	room := r.cfg.MaxResultBytes - overhead - int64(len(rep.Data)+len(rep.QueueAck))
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

// encoded is a report as JSON without HTML escapes. It is written once, into memory of its size:
// results may have megabytes.
func encoded(rep report) string {
	size := len(rep.Stdout) + len(rep.StderrLog) + len(rep.Error) + len(rep.OutputError) // escapes add a little
	var out strings.Builder
	out.Grow(size + size/16 + len(rep.Data) + len(rep.QueueAck) + overhead)
	out.WriteString(`{"exit_code":` + strconv.Itoa(rep.ExitCode) + `,"duration_ms":` +
		strconv.FormatInt(rep.DurationMS, 10) +
		`,"succeeded":` + strconv.FormatBool(rep.Succeeded))
	writeText := func(name, text string) {
		if text != "" {
			out.WriteString(`,"` + name + `":`)
			output.Quote(&out, text)
		}
	}
	writeFlag := func(name string, set bool) {
		if set {
			out.WriteString(`,"` + name + `":true`)
		}
	}
	writeJSON := func(name string, value json.RawMessage) {
		if len(value) > 0 {
			out.WriteString(`,"` + name + `":`)
			out.Write(value)
		}
	}
	writeText("stdout", rep.Stdout)
	writeFlag("stdout_truncated", rep.StdoutTruncated)
	writeText("stderr_log", rep.StderrLog)
	writeFlag("stderr_truncated", rep.StderrTruncated)
	writeJSON("data", rep.Data)
	writeJSON("queue_ack", rep.QueueAck)
	writeText("output_error", rep.OutputError)
	writeText("error", rep.Error)
	writeFlag("cancelled", rep.Cancelled)
	writeFlag("timed_out", rep.TimedOut)
	out.WriteByte('}')
	return out.String()
}
