// Package process runs one child process to its end, with all its descendants.
//
// The child gets its own process group. When the context ends, the group gets SIGTERM and, after the grace period,
// SIGKILL. When the child ends by itself, the rest of its group is killed: background processes would outlive the
// execution and hold its output open. On Linux the child also dies with this process; with a Guard its group does on
// each platform. Only a descendant that moves itself into another session escapes.
//
// A child may run as another user and within limits, which hold before it begins. Shield protects a program from all
// processes of the same user; every program of ours calls it first.
//
// Run fails only if the child cannot be started. The Outcome has every other end.
package process
