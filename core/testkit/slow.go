package testkit

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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
// long courses.
func Some[T any](t testing.TB, all []T, n int) []T {
	t.Helper()
	if Slow() || n >= len(all) {
		return all
	}
	drawn := make([]T, 0, n)
	for _, i := range Dice(t).Perm(len(all))[:n] {
		drawn = append(drawn, all[i])
	}
	return drawn
}

// SeedVariable is the environment variable that repeats the draws of a run.
const SeedVariable = "ATTUNE_TEST_SEED"

// Dice are a test's own source of chance. A test that fails names the seed.
func Dice(t testing.TB) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("drawn with %s=%d", SeedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Courses are the cases of a test, by the stage that they share: in the long courses
// each has one of its own, else all of them follow one another on one.
func Courses[T any](all []T) [][]T {
	if !Slow() {
		return [][]T{all}
	}
	return slices.Collect(slices.Chunk(all, 1))
}
