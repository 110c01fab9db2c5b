package bench

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Tick is the unit of CPU time in /proc: Linux shows every program a hundredth of a second.
const Tick = 10 * time.Millisecond

// MachineTime is how long all processors have worked since the machine was started, 0 where
// the system does not say.
func MachineTime() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(first)
	var busy int64
	for i, field := range fields {
		n, _ := strconv.ParseInt(field, 10, 64) // the system writes numbers
		// cpu user nice system idle iowait irq softirq steal …
		if i == 1 || i == 2 || i == 3 || i == 6 || i == 7 || i == 8 {
			busy += n
		}
	}
	return time.Duration(busy) * Tick
}
