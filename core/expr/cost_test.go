package expr_test

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/expr"
)

// cpu is the time of a processor that a function takes.
func cpu(t *testing.T, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after syscall.Rusage
	require.NoError(t, syscall.Getrusage(1, &before)) // of this thread
	f()
	require.NoError(t, syscall.Getrusage(1, &after))
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}

// reference is work that takes 5 ms on the machine on which steps were calibrated. A slower
// machine, or the race detector, makes both sides of the comparison slower.
func reference() {
	list := make([]int, 60_000)
	for i := range list {
		list[i] = i * 7919 % 60_013
	}
	slices.SortFunc(list, cmp.Compare)
}

// No expression takes more than 50 ms of a processor, whatever its pattern, text or list.
//
//nolint:paralleltest // it measures
func TestNoExpressionTakesLong(t *testing.T) {
	list := func(n int, item func(int) any) []any {
		items := make([]any, n)
		for i := range items {
			items[i] = item(i)
		}
		return items
	}
	object := map[string]any{}
	for i := range 60_000 {
		object[fmt.Sprintf("key%d", i*7919%60_013)] = int64(i)
	}
	long := strings.Repeat("a", 64<<10)
	names := expr.Names{
		"long": long, "wide": strings.Repeat("ä", 32<<10), "large": strings.Repeat("Ünïcode ", 400_000),
		"object":  object,
		"numbers": list(90_000, func(i int) any { return int64(i * 7919 % 90_001) }),
		"texts":   list(9_000, func(i int) any { return strings.Repeat("x", 300) + fmt.Sprint(i*7919%9_001) }),
		"nested":  list(20_000, func(i int) any { return map[string]any{"a": []any{float64(i) / 3, "x", nil}} }),
	}
	for _, pattern := range []string{
		`(a?){1000}a{1000}(.*.*.*.*=)`, `(a?){400}a{400}=`, `(.*)(.*)(.*)(.*)(.*)[^a]$`,
		strings.Repeat(`(a|a?)`, 100) + "b",
		`(a{0,100}){5}b`, strings.Repeat(`\pL*`, 90) + "!", `(?i)` + strings.Repeat(`[\pL\d]?`, 60) + `!`,
		`(?i)` + strings.Repeat(`\PL`, 330),
		strings.Repeat(`[^\pL\pN]`, 111), `(` + strings.Repeat(`\pL|`, 240) + `)`, `(a|b|ab)*c`,
		`(?i)` + strings.Repeat(`[^a]`, 240),
		strings.Repeat("(", 490) + strings.Repeat(")", 490), `(?:a?){300}b`, `\b\b\b\B\b$`,
		strings.Repeat("(a?){9}", 140),
	} {
		names["pattern"] = pattern
		requireShort(t, "match(pattern, long) or match(pattern, wide)", names)
	}
	for _, source := range []string{
		`lower(large) == upper(large)`, `split(large, "")`, `split(large, "e")`, `replace(large, "e", "ee")`,
		`replace(long, "", "bc")`,
		`join(numbers, ",")`, `join(nested, ",")`, `sort(numbers)`, `sort(texts)`, `unique(texts)`, `unique(numbers)`,
		`unique(nested)`,
		`keys(object)`, `values(object)`, `contains(large, "zzz")`, `reversed(large)`, `slice(large, 5, 9)`, `large[3]`,
		`string(nested)`,
		`merge(object, object)`, `zip(numbers, numbers)`, `chunks(numbers, 1)`, `flat(nested)`, `range(99000)`,
		`count(large, "e")`,
		`index_of(numbers, -1)`, `nested == nested`, `numbers in [numbers, nested]`, `sum(numbers)`, `number(large)`,
		`trim(large)`,
		strings.Repeat(`match("(?i)[^x]*=", slice(long, 0, 2000)) or `, 40) + "false",
		strings.Repeat("(1+1)*", 90) + "1",
	} {
		requireShort(t, source, names)
	}
}

// requireShort compares the time of an evaluation with the reference, whether it succeeds or ends at a bound.
func requireShort(t *testing.T, source string, names expr.Names) {
	t.Helper()
	expression, err := expr.Parse(source)
	require.NoError(t, err)
	const referencesIn50ms = 10
	var most, took time.Duration
	for range 5 { // another program, or the collector of garbage, may slow one of the two down
		took = cpu(t, func() { _, err = expression.Eval(names) })
		if most = referencesIn50ms * cpu(t, reference); took <= most {
			return
		}
	}
	t.Errorf("%s %.60v took %v, at most %v: %v", source, names["pattern"], took, most, err)
}

// Errors name the bound.
func TestBoundsOfPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, text, want string }{
		{strings.Repeat("a", 1001), "", "the pattern is longer than 1000 bytes"},
		{"(a{1000}){1000}", "", "invalid repeat count"},
		{"a{1000}b{1000}c", "", "the pattern has more than 2000 parts"},
		{"a", strings.Repeat("a", 64<<10+1), "the text has 65537 bytes, and 65536 are matched at most"},
		{"(a?){300}b", strings.Repeat("a", 60_000), "the evaluation takes more than 100000 steps"},
		{"(", "", "missing closing )"},
	} {
		_, err := evaluate(t, `match(p, s)`, expr.Names{"p": c.pattern, "s": c.text})
		require.ErrorContains(t, err, c.want)
	}
	for pattern, text := range map[string]string{ // common use stays far from the bounds
		`error.*timeout`: strings.Repeat("2026-01-01 an info line of a log that says no more\n", 1000) +
			"an error: timeout",
		`(?i)\bfailed\b`: strings.Repeat("nothing to see ", 1000) + "FAILED",
		`^\d+ms$`:        "1234ms",
	} {
		value, err := evaluate(t, `match(p, s)`, expr.Names{"p": pattern, "s": text})
		require.NoError(t, err, pattern)
		require.Equal(t, true, value, pattern)
	}
}

func evaluate(t *testing.T, source string, names expr.Names) (any, error) {
	t.Helper()
	expression, err := expr.Parse(source)
	require.NoError(t, err)
	return expression.Eval(names)
}

// FuzzMatch compares matching with package regexp.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`a+b`, "xaab"},
		{`^a|b$`, "cb"},
		{`\bfoo\b`, "a foo b"},
		{`(?i)Ä`, "ä"},
		{`(?m)^x$`, "a\nx\nb"},
		{`a{2,3}?c`, "aaac"},
		{``, ""},
		{`abc`, "ababcabc"},
		{`\Aab`, "xab"},
		{`ab\z`, "abab"},
		{`(?s).`, "\n"},
		{`.`, "\n"},
		{`[^a]`, "\xff"},
		{`\B`, ""},
		{`a\b`, "aa a"},
		{`\x{fffd}`, "\xff"},
		{`ab\b`, "abab ab"},
		{`$^`, ""},
		{`(|a)*b`, "aab"},
		{`é`, "cafe\u0301\u00e9"},
	} {
		f.Add(seed[0], seed[1])
	}
	expression, err := expr.Parse("match(p, s)")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, pattern, text string) {
		got, err := expression.Eval(expr.Names{"p": pattern, "s": text})
		if err != nil {
			return
		}
		require.Equal(t, regexp.MustCompile(pattern).MatchString(text), got, "%q in %q", pattern, text)
	})
}
