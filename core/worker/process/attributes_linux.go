package process

import (
	"fmt"
	"syscall"
)

// attributes make the child the leader of a group and let it die with the
// process that runs it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Shield keeps processes of the same user out of this process: they can neither read
// its memory nor the environment that it was started with. Processes of root can.
// Core files are not written any more. It fails where the platform cannot do that.
func Shield() error {
	const setDumpable = 4 // PR_SET_DUMPABLE
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0); errno != 0 {
		return fmt.Errorf("protect the memory of this process: %w", errno)
	}
	return nil
}
