package devstack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes gives a detached child a session of its own. An attached
// one gets a process group of its own, so that Ctrl-C reaches the caller only,
// and a signal for the moment its parent dies.
func processAttributes(c child, detached bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Credential: c.as.credential()}
	if detached {
		attr.Setsid = true
		return attr
	}
	attr.Setpgid = true
	attr.Pdeathsig = c.onDeath
	return attr
}

func commandLine(pid int) string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(raw), "\x00", " ") + " "
}

// marked lists the processes whose command line holds the mark.
func marked(mark string) []int {
	var pids []int
	for _, pid := range processes() {
		if pid != os.Getpid() && alive(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inFolder reports whether a process has dir as its working folder, as every
// process of a PostgreSQL server has its data folder.
func inFolder(dir string) bool {
	want, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for _, pid := range processes() {
		cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		if err == nil && cwd == want {
			return true
		}
	}
	return false
}

func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
