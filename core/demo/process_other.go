//go:build !linux

package demo

import "syscall"

// dieWithParent keeps the terminal's ^C from a child. Nothing here ends it with
// its parent; Stop does.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *process) run(started chan<- error) { p.wait(started) }
