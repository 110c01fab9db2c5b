package testkit

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Slow reports whether ATTUNE_SLOW_TESTS is set, as `make chaos` does: tests then run all their cases.
func Slow() bool { return os.Getenv("ATTUNE_SLOW_TESTS") != "" }

// NeedsSlow skips a test unless Slow; what completes "set ATTUNE_SLOW_TESTS to".
func NeedsSlow(t testing.TB, what string) {
	t.Helper()
	if !Slow() {
		t.Skip("set ATTUNE_SLOW_TESTS to " + what)
	}
}

// Some returns n random cases of a test, or all if Slow.
func Some[T any](t testing.TB, all []T, n int) []T {
	t.Helper()
	if Slow() || n >= len(all) {
		return all
	}
	some := make([]T, 0, n)
	for _, i := range Dice(t).Perm(len(all))[:n] {
		some = append(some, all[i])
	}
	return some
}

// SeedVariable is the variable with the seed of a run to repeat.
const SeedVariable = "ATTUNE_TEST_SEED"

// Dice returns a test's own source of random numbers. A failed test logs the seed.
func Dice(t testing.TB) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("repeat with %s=%d", SeedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Courses groups the cases of a test by the servers that they share: if Slow each case has its own, otherwise
// all of them use the same, one after the other.
func Courses[T any](all []T) [][]T {
	if !Slow() {
		return [][]T{all}
	}
	return slices.Collect(slices.Chunk(all, 1))
}
