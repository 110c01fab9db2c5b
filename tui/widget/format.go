package widget

import (
	"fmt"
	"strconv"
	"time"

	"github.com/attune-go/attune/core/phrase"
)

// Unknown stands for a value that was not collected. It is never drawn as zero.
const Unknown = "--"

// Number groups the digits of n by a thin space. From ten million on it writes millions.
func Number(n int64, space string) string {
	if n < 0 {
		return "-" + Number(-n, space)
	}
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return fmt.Sprintf("%d%s%03d", n/1000, space, n%1000)
	case n < 10_000_000:
		return oneDecimal(float64(n)/1e6) + "M"
	case n < 1_000_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	default:
		return oneDecimal(float64(n)/1e9) + "G"
	}
}

func oneDecimal(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// Age writes a duration in at most six cells: 0.2s, 41s, 14m02s, 9h05m, 3d04h. Negative durations, a result of
// differing clocks, are 0s.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return oneDecimal(d.Seconds()) + "s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	default:
		return strconv.Itoa(int(d.Hours())/24) + "d"
	}
}

// Short writes a duration in its largest unit only: 41s, 14m, 9h, 3d.
func Short(d time.Duration) string { return phrase.Short(d) }

// Latency writes how long a source took: 9ms, 1.2s.
func Latency(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(max(1, d.Milliseconds()), 10) + "ms"
	}
	return oneDecimal(d.Seconds()) + "s"
}

// Signed writes a change with its sign; no change is a plain 0.
func Signed(n int64, space string) string {
	if n > 0 {
		return "+" + Number(n, space)
	}
	return Number(n, space)
}

// Bytes writes a size in at most six cells: 812B, 4.2k, 37M, 1.5G.
func Bytes(n int64) string {
	units := []string{"B", "k", "M", "G", "T"}
	size, unit := float64(n), 0
	for size >= 1000 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	if unit == 0 || size >= 10 {
		return strconv.FormatFloat(size, 'f', 0, 64) + units[unit]
	}
	return oneDecimal(size) + units[unit]
}
