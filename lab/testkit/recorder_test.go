package testkit_test

import (
	"runtime"
	"testing"
)

// recorder is a test that may fail without failing the real one.
type recorder struct {
	testing.TB
	failed  chan bool
	didFail bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.didFail = true }
func (r *recorder) FailNow()              { r.didFail = true; runtime.Goexit() }
