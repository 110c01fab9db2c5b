package phrase_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

func TestPlacesInARowAreWritten(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd",
		111: "111th",
	} {
		require.Equal(t, want, phrase.Ordinal(n))
	}
}
