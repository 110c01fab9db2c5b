package demo

import (
	"runtime"
	"syscall"
)

// dieWithParent ends a child together with the thread that started it, and hides the terminal's ^C from
// it: the demo ends its processes in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// run starts the process from a thread that lives as long as the process, because the kernel ties the
// child to its parent thread, and waits for its end.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.wait(started)
}
