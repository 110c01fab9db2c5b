package monitor

import (
	"strconv"
	"strings"
)

// WorkerQueue names the broker queue that a worker takes executions from.
func WorkerQueue(id int64) string { return "worker." + strconv.FormatInt(id, 10) + ".executions" }

// WorkerOfQueue returns the worker that a queue name belongs to, and false for
// a queue of another kind.
func WorkerOfQueue(name string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, "worker.")
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutSuffix(rest, ".executions")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil
}
