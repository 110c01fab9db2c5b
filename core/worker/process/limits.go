package process

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Limits bound a child and each of its descendants. Zero leaves a limit as it is for
// this process.
type Limits struct {
	// CPU is the processor time of one process, in whole seconds. It is killed beyond.
	CPU time.Duration
	// Memory is the private memory that one process may write to, in bytes.
	Memory int64
	// OpenFiles is how many files one process may have open.
	OpenFiles int64
	// Processes is how many processes and threads the child's user may have in all.
	// It does not bind root.
	Processes int64
}

// commands set the limits in a shell, whose process the child then takes over. So they
// hold before the child has begun, on each platform. Shells disagree on the option for
// processes.
func (l Limits) commands() string {
	var script strings.Builder
	for _, one := range []struct {
		option   string
		resource int
		value    int64
		unit     int64
	}{
		{"-n %d", syscall.RLIMIT_NOFILE, l.OpenFiles, 1},
		{"-d %d", syscall.RLIMIT_DATA, l.Memory, 1024},
		{"-t %d", syscall.RLIMIT_CPU, int64(l.CPU / time.Second), 1},
	} {
		if one.value > 0 {
			value := max(within(one.resource, one.value)/one.unit, 1)
			fmt.Fprintf(&script, "ulimit "+one.option+" || exit 126\n", value)
		}
	}
	if l.Processes > 0 {
		fmt.Fprintf(&script, "ulimit -u %d 2>/dev/null || ulimit -p %[1]d || exit 126\n", l.Processes)
	}
	return script.String()
}

// within is a value that this process may set: none can be above what it was given.
func within(resource int, value int64) int64 {
	var have syscall.Rlimit
	if syscall.Getrlimit(resource, &have) != nil || have.Max >= uint64(value) {
		return value
	}
	return int64(have.Max)
}

// wrap is a command that sets the limits and becomes the program, nil without limits.
func (l Limits) wrap(program string, args []string) []string {
	commands := l.commands()
	if commands == "" {
		return nil
	}
	return append([]string{"/bin/sh", "-c", commands + `exec "$@"`, "sh", program}, args...)
}
