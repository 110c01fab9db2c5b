package crashpoint

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Freeze stops the process until SIGCONT, as SIGSTOP does. Its caller runs no further meanwhile: the
// system may stop the other threads first, and the calling one somewhat later.
func Freeze() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	send(syscall.SIGSTOP)
	<-continued
}

func send(what syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), what); err != nil {
		panic(fmt.Sprintf("send %s to this process: %v", what, err))
	}
}
