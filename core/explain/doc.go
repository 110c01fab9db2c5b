// Package explain says why an execution or a workflow waits, failed or ended, what blocks a queue, and when
// it will move.
//
// It reads through monitor and adds sentences and forecasts, the same for commands and dashboard. A forecast
// without enough data says so instead of guessing.
//
// On failure its functions return what monitor returns: the part that was read, and the error.
package explain
