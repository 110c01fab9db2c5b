//go:build race

package worker_test

// raced says that memory is several times that of a program without the race detector.
const raced = true
