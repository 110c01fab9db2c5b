//go:build !linux

package demo

import "syscall"

// dieWithParent has no counterpart here; Stop ends the children.
func dieWithParent() *syscall.SysProcAttr { return nil }

func (p *process) run(started chan<- error) { p.wait(started) }
