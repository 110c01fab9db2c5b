// Package phrase writes texts for people: numbers, durations and times, each with one spelling; foreign text
// without the characters that steer a terminal; cells of a width; the name that was meant by a misspelt one. It is
// pure, and no text makes it fail.
package phrase

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span writes a duration with at most two units and few digits.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	d = rounded(d) // first, so that almost an hour is one hour and not 60 minutes
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

// rounded rounds a duration to the written digits.
func rounded(d time.Duration) time.Duration {
	for _, step := range []struct{ below, to time.Duration }{
		{time.Second, time.Millisecond},
		{time.Minute, 100 * time.Millisecond},
		{time.Hour, time.Second},
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

// Clock writes the time of day of a moment and its distance from now.
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

// Plural writes a number with its noun.
func Plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

// Part says how much of a document is there, such as "64 of 823 KiB".
func Part(part int, whole int64) string {
	return fmt.Sprintf("%d of %d KiB", part>>10, (whole+1023)>>10)
}

// Nouns is the singular for one thing, else the plural.
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

// Destination is where a message is sent: an exchange and a key, or through the default exchange its queue.
func Destination(exchange, key string) string {
	if exchange == "" {
		return "the queue " + key
	}
	return exchange + " with the key " + key
}

// Ordinal writes 1st, 2nd, 3rd.
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

// In writes when something is due.
func In(d time.Duration) string {
	if d <= time.Second {
		return "now"
	}
	return "in " + d.Round(time.Second).String()
}

// Text builds a sentence from parts that may be unknown. The zero value is empty.
type Text struct{ text string }

// Say begins a text.
func Say(format string, args ...any) *Text { return new(Text).Add(format, args...) }

// Add adds a part.
func (t *Text) Add(format string, args ...any) *Text {
	t.text += fmt.Sprintf(format, args...)
	return t
}

// With adds a part behind its introduction, unless the part is empty.
func (t *Text) With(word, part string) *Text {
	if part != "" {
		t.text += word + part
	}
	return t
}

// Since adds how long ago something began behind its introduction, if known.
func (t *Text) Since(word string, begun *time.Time, now time.Time) *Text {
	if begun != nil {
		t.text += word + Since(*begun, now)
	}
	return t
}

// String returns the text.
func (t *Text) String() string { return t.text }

// Sentence returns the text with one full stop at its end.
func (t *Text) Sentence() string { return strings.TrimSuffix(t.text, ".") + "." }
