package process

import (
	"fmt"
	"syscall"
)

// attributes make the child the leader of a group and let it die with this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Shield prevents processes of the same user, but not root, from reading the memory and the initial environment of this
// process. It also disables core files. It fails on other platforms.
func Shield() error {
	const setDumpable = 4 // PR_SET_DUMPABLE
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0); errno != 0 {
		return fmt.Errorf("protect the memory of this process: %w", errno)
	}
	return nil
}
