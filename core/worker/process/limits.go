package process

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Limits bound a child and each of its descendants. Zero inherits the limit of this process.
type Limits struct {
	// CPU is the processor time of one process, in whole seconds. A process that exceeds it is killed.
	CPU time.Duration
	// Memory is the private memory that one process may write to, in bytes.
	Memory int64
	// OpenFiles bounds the open files of one process.
	OpenFiles int64
	// Processes bounds all processes and threads of the child's user, except root.
	Processes int64
}

// commands set the limits in a shell, which the child then replaces. So they hold before the child begins, on each
// platform. Shells have different options for processes.
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

// within bounds a limit by the hard limit of this process.
func within(resource int, value int64) int64 {
	var have syscall.Rlimit
	if syscall.Getrlimit(resource, &have) != nil || have.Max >= uint64(value) {
		return value
	}
	return int64(have.Max)
}

// wrap returns a command that sets the limits and executes the program, nil without limits.
func (l Limits) wrap(program string, args []string) []string {
	commands := l.commands()
	if commands == "" {
		return nil
	}
	return append([]string{"/bin/sh", "-c", commands + `exec "$@"`, "sh", program}, args...)
}
