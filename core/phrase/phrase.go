// Package phrase writes numbers, durations and moments for people. Log lines, commands and the dashboard share
// it. It promises one spelling of each; nothing in it fails.
package phrase

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span writes a duration for people: two units at most, and no more digits than
// anybody reads.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	d = rounded(d) // first, so that what is almost an hour is one, and not 60 minutes
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.String()
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Hour:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return units(d, time.Hour, "h", time.Minute, "m")
	default:
		return units(d, day, "d", time.Hour, "h")
	}
}

// rounded is a duration to the digits that are written of it.
func rounded(d time.Duration) time.Duration {
	for _, step := range []struct{ below, to time.Duration }{
		{time.Second, time.Millisecond}, {time.Minute, 100 * time.Millisecond}, {time.Hour, time.Second},
		{24 * time.Hour, time.Minute},
	} {
		if d < step.below {
			return d.Round(step.to)
		}
	}
	return d.Round(time.Hour)
}

func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := strconv.FormatInt(int64(d/big), 10) + bigName
	if rest := d % big / small; rest > 0 {
		text += strconv.FormatInt(int64(rest), 10) + smallName
	}
	return text
}

// Clock writes a moment as seen from another: its time of day, and how far away
// it is.
func Clock(t, now time.Time) string {
	layout := "15:04:05Z"
	if t.UTC().Truncate(24*time.Hour) != now.UTC().Truncate(24*time.Hour) {
		layout = "2006-01-02 15:04:05Z"
	}
	if t.After(now) {
		return "at " + t.UTC().Format(layout) + " (in " + Span(t.Sub(now)) + ")"
	}
	return "at " + t.UTC().Format(layout) + " (" + Span(now.Sub(t)) + " ago)"
}

// Since writes how long ago something began.
func Since(t, now time.Time) string { return Span(max(now.Sub(t), 0)) }

// Plural puts a number before a word.
func Plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

// Nouns is the word for one thing, or for as many as there are.
func Nouns(n int, what string) string {
	switch {
	case n == 1:
		return what
	case strings.HasSuffix(what, "y"):
		return strings.TrimSuffix(what, "y") + "ies"
	default:
		return what + "s"
	}
}

// Ordinal writes a place in a row: 1st, 2nd, 3rd.
func Ordinal(n int64) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.FormatInt(n, 10) + suffix
}

// In says when something is due.
func In(d time.Duration) string {
	if d <= time.Second {
		return "now"
	}
	return "in " + d.Round(time.Second).String()
}

// Text is a sentence that is put together from parts, some of which are not known. The zero value is empty.
type Text struct{ text string }

// Say begins a text.
func Say(format string, args ...any) *Text { return new(Text).Add(format, args...) }

// Add adds a part.
func (t *Text) Add(format string, args ...any) *Text {
	t.text += fmt.Sprintf(format, args...)
	return t
}

// With adds a part behind the word that introduces it, unless the part is empty.
func (t *Text) With(word, part string) *Text {
	if part != "" {
		t.text += word + part
	}
	return t
}

// Since adds how long ago something began behind the word that introduces it, where it is known.
func (t *Text) Since(word string, begun *time.Time, now time.Time) *Text {
	if begun != nil {
		t.text += word + Since(*begun, now)
	}
	return t
}

// String is the text as it was put together.
func (t *Text) String() string { return t.text }

// Sentence is the text with a full stop at its end.
func (t *Text) Sentence() string { return strings.TrimSuffix(t.text, ".") + "." }
