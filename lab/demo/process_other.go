//go:build !linux

package demo

import "syscall"

// dieWithParent hides the terminal's ^C from a child. On this system only Stop ends it.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *process) run(started chan<- error) { p.wait(started) }
