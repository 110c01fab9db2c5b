package phrase

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var longUnits = regexp.MustCompile(`(\d*\.?\d+)([wd])`)

// ParseSpan reads every duration that the product writes, such as 90s, 1m30s, 1d02h, 7d or 1w, and those of Go.
func ParseSpan(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	inHours := longUnits.ReplaceAllStringFunc(text, func(part string) string {
		hours, last := 24.0, len(part)-1
		if part[last] == 'w' {
			hours *= 7
		}
		n, _ := strconv.ParseFloat(part[:last], 64) // too many digits are too many for a duration, too
		return strconv.FormatFloat(n*hours, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(inHours)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 1m30s, 12h, 7d or 1w", text)
	}
	return d, nil
}

// SpanFlag is a flag with a duration that is not negative.
type SpanFlag struct {
	To *time.Duration
	// Age refuses 0, which would choose everything.
	Age bool
}

// String writes the duration, empty for none.
func (f SpanFlag) String() string {
	if f.To == nil || *f.To == 0 {
		return ""
	}
	return f.To.String()
}

// Set reads the duration.
func (f SpanFlag) Set(text string) error {
	d, err := ParseSpan(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("it must not be negative")
	case d == 0 && f.Age:
		return errors.New("it must be above zero")
	}
	*f.To = d
	return nil
}

// Type names the kind of value in help texts.
func (SpanFlag) Type() string { return "duration" }

// Short writes a duration in its largest unit only: 41s, 14m, 9h, 3d.
func Short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(0, int(d.Seconds()))) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	default:
		return strconv.Itoa(int(d.Hours())/24) + "d"
	}
}
