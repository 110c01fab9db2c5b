package demo

import (
	"runtime"
	"syscall"
)

// dieWithParent makes a child end when the thread that started it ends, and
// keeps the terminal's ^C from it: the demo ends its processes in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// run starts the process from a thread that lives as long as the process, and
// waits for its end: the kernel ties the child to its parent thread.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.wait(started)
}
