//go:build race

package worker_test

// raced reports whether the race detector multiplies the memory.
const raced = true
