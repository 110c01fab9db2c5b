// Package process runs one child process to its end and leaves nothing of it
// behind.
//
// The child gets a process group of its own. When the context ends, the whole
// group is asked to stop (SIGTERM) and, after the grace period, killed
// (SIGKILL). When the child ends by itself, what it left running in its group
// is killed too: a background process would otherwise outlive the execution
// that started it and hold its output open. On Linux the child also dies with
// the process that runs it, and with a Guard its group does on each platform.
// A descendant that moves itself into another session escapes; that is the one
// thing not promised.
//
// A child may run as another user and within limits, which hold before it begins.
// Shield keeps children of the same user out of this process.
//
// Run fails only when the child could not be started. How it ended otherwise
// is in the Outcome.
package process
