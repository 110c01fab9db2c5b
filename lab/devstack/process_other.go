//go:build !linux

package devstack

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes gives a detached child a session and an attached one a process group of its own. This
// system has no signal for a parent's death: an attached stack of a killed owner runs until Down.
func processAttributes(c child, detached bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: c.as.credential(), Setsid: detached, Setpgid: !detached}
}

func commandLine(pid int) string {
	out, err := exec.Command("ps", "-ww", "-o", "stat=,command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || strings.HasPrefix(strings.TrimSpace(string(out)), "Z") {
		return ""
	}
	return strings.TrimSpace(string(out)) + " "
}

// marked returns the processes with the mark in their command line.
func marked(mark string) []int {
	out, err := exec.Command("ps", "-wwaxo", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		number, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err == nil && pid != os.Getpid() && strings.Contains(command+" ", mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inFolder is unknown on this system. PostgreSQL's own lock on its shared memory protects the data.
func inFolder(string) bool { return false }
