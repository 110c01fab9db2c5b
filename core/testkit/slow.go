package testkit

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Slow reports whether the long courses are wanted, which `make chaos` runs:
// ATTUNE_SLOW_TESTS is set.
func Slow() bool { return os.Getenv("ATTUNE_SLOW_TESTS") != "" }

// NeedsSlow skips a test that is part of the long courses only; what says what it
// would do.
func NeedsSlow(t testing.TB, what string) {
	t.Helper()
	if !Slow() {
		t.Skip("set ATTUNE_SLOW_TESTS to " + what)
	}
}

// Some are n of all cases of a test, drawn anew in each run, and all of them in the
// long courses. A failure names its case, so that it can be tried again.
func Some[T any](all []T, n int) []T {
	if Slow() || n >= len(all) {
		return all
	}
	drawn := make([]T, 0, n)
	for _, i := range rand.Perm(len(all))[:n] {
		drawn = append(drawn, all[i])
	}
	return drawn
}
