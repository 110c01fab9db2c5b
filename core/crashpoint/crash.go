//go:build crashpoints

package crashpoint

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// The plans that the environment gave when the process started. What this build
// is for is that it dies, or stands still, of them.
var (
	crashes = planned(Variable)
	freezes = planned(FreezeVariable)
)

func planned(variable string) *countdown {
	at, err := Parse(os.Getenv(variable))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", variable, err))
	}
	return &countdown{left: at}
}

type countdown struct {
	mu   sync.Mutex
	left map[string]int // reaches to go; guarded by mu
}

// due counts a reach and says whether it is the one that was planned.
func (c *countdown) due(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, planned := c.left[name]
	if planned {
		c.left[name] = left - 1
	}
	return planned && left == 1
}

// Reach says that the process has come to a named moment. If the plan says so,
// the process ends there, or stands still until it is told to continue.
func Reach(name string) {
	if crashes.due(name) {
		signal(name, syscall.SIGKILL)
		select {} // nothing after the moment happens
	}
	if freezes.due(name) {
		signal(name, syscall.SIGSTOP)
	}
}

func signal(name string, what syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), what); err != nil {
		panic(fmt.Sprintf("%s at %s: %v", what, name, err))
	}
}
