// Package explain says why an execution or a workflow waits, failed or ended, what keeps a queue, and when
// it will move.
//
// It reads through monitor and adds sentences and forecasts. The commands and the dashboard show the same
// sentences. A forecast names what it was computed from; without enough data it says so instead of guessing.
//
// On failure its functions return what monitor returns: the part that was read, and the error.
package explain
