package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// clean is a text for one line of a terminal.
func clean(text string) string { return phrase.Line(strings.ToValidUTF8(text, "\uFFFD")) }

// pretty indents a JSON text.
func pretty(text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if !json.Valid(text) || decoder.Decode(&value) != nil {
		return clean(string(text))
	}
	out, err := jsonvalue.Indented(value)
	if err != nil {
		return clean(string(text))
	}
	return phrase.JSON(out)
}

func dash(text string) string { return cmp.Or(text, "-") }

// short formats a duration with few digits.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// age formats the time since a moment with few digits.
func age(d time.Duration) string { return phrase.Short(d) }

func idText(id *int64) string { return dash(opt(id)) }

func idOrDash(id int64) string {
	if id == 0 {
		return "-"
	}
	return fmt.Sprint(id)
}

func countText(c monitor.Count) string {
	if c.AtLeast {
		return strconv.FormatInt(c.Value, 10) + "+"
	}
	return strconv.FormatInt(c.Value, 10)
}

func ageText(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return short(now.Sub(*at))
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func waiting(n int) string {
	if n == 1 {
		return "1 execution waits"
	}
	return fmt.Sprintf("%d executions wait", n)
}

// at formats a time and its age.
func at(moment, now time.Time) string {
	return moment.Format(time.RFC3339) + ", " + short(now.Sub(moment)) + " ago"
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

func agoText(at, now time.Time) string {
	return at.UTC().Format(time.RFC3339) + ", " + age(now.Sub(at)) + " ago"
}

// opt formats the target of a pointer, empty for nil.
func opt[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// optTime formats a time, empty for nil.
func optTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}
