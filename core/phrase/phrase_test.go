package phrase_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/phrase"
)

func TestATextHasItsKnownParts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	begun := now.Add(-90 * time.Second)
	text := func(by, reason string, since *time.Time) string {
		return phrase.Say("queue %d is paused", 7).With(" by ", by).Since(" for ", since, now).With(": ",
			reason).Sentence()
	}
	require.Equal(t, "queue 7 is paused by alice for 1m30s: new disk.", text("alice", "new disk.", &begun))
	require.Equal(t, "queue 7 is paused.", text("", "", nil))
}

func TestSpansHaveTwoUnitsAtMost(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "12ms": 12 * time.Millisecond, "1.5s": 1500 * time.Millisecond,
		"1h":   time.Hour - time.Millisecond,
		"2h5m": 2*time.Hour + 5*time.Minute + time.Second, "3d4h": 76*time.Hour + time.Minute,
	} {
		require.Equal(t, want, phrase.Span(d))
	}
	require.Equal(t, "1 slot", phrase.Plural(1, "slot", "slots"))
	require.Equal(t, "0 slots", phrase.Plural(0, "slot", "slots"))
}

// Every duration that is written is read.
func TestSpansAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(1000*24*time.Hour)).Draw(t, "d"))
		got, err := phrase.ParseSpan(phrase.Span(d))
		require.NoError(t, err)
		require.Equal(t, phrase.Span(d), phrase.Span(got))
		require.InDelta(t, d.Seconds(), got.Seconds(), max(0.05*d.Seconds(), 0.001)) // 1.15 s reads as 1.1 s
	})
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, "1w": 168 * time.Hour, "1d12h": 36 * time.Hour, "1d02h": 26 * time.Hour,
		"90s":   90 * time.Second,
		"1m30s": 90 * time.Second, "1.5d": 36 * time.Hour,
		"1w1d1h1m1s1ms": 193*time.Hour + time.Minute + 1001*time.Millisecond,
		" 2h ":          2 * time.Hour, "0": 0, "-1d": -24 * time.Hour, ".5w": 84 * time.Hour,
		"300ms": 300 * time.Millisecond,
	} {
		got, err := phrase.ParseSpan(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "7", "1 d", "w1", "1x",
		"1e3d", "1.d5", "99999999999w", "1d1", "NaNd", "d7"} {
		_, err := phrase.ParseSpan(text)
		require.EqualError(t, err, fmt.Sprintf("%q is not a duration such as 90s, 1m30s, 12h, 7d or 1w", text))
	}
	var to time.Duration
	require.ErrorContains(t, phrase.SpanFlag{To: &to}.Set("-1h"), "negative")
	require.ErrorContains(t, phrase.SpanFlag{To: &to, Age: true}.Set("0s"), "above zero")
	require.NoError(t, phrase.SpanFlag{To: &to}.Set("0"))
}

func TestPlacesInARowAreWritten(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd",
		111: "111th",
	} {
		require.Equal(t, want, phrase.Ordinal(n))
	}
}
