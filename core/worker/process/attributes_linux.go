package process

import "syscall"

// attributes make the child the leader of a group and let it die with the
// process that runs it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
