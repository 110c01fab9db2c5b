package devstack

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processAttributes gives a detached child a session of its own. An attached one gets a process group of its
// own, so that Ctrl-C reaches the caller only, and a signal at the death of its parent.
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

// commandLine returns the arguments of a process, each followed by a blank, empty after its end. A process
// that replaces itself by another program (start scripts do so several times) has none for an instant;
// commandLine waits for it.
func commandLine(pid int) string {
	for range 500 {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil {
			return ""
		}
		if len(raw) > 0 {
			return strings.ReplaceAll(string(raw), "\x00", " ") + " "
		}
		if !runsProgram(pid) {
			return ""
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // milliseconds at most, without a context to cancel them
	}
	return "" // the process erased its arguments
}

// runsProgram is false for a zombie and for a kernel thread, which never have a command line.
func runsProgram(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// "pid (name) state ppid pgrp session tty tpgid flags ...", proc(5); the name may have any character.
	const kernelThread = 0x00200000
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 7 || fields[0] == "Z" || fields[0] == "X" {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&kernelThread == 0
}

// marked returns the processes with the mark in their command line.
func marked(mark string) []int {
	var pids []int
	for _, pid := range processes() {
		if pid != os.Getpid() && alive(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inFolder reports whether a process has dir as its working folder. Every process of a PostgreSQL server has
// its data folder.
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
