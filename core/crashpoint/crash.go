//go:build crashpoints

package crashpoint

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// The plans of the environment at the start of the process, which this build executes.
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
	left map[string]int // remaining reaches; guarded by mu
}

// due counts a reach and reports whether it is the planned one.
func (c *countdown) due(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left, planned := c.left[name]
	if planned {
		c.left[name] = left - 1
	}
	return planned && left == 1
}

// Reach marks a named point. If the plan says so, the process ends there, or stops until SIGCONT.
func Reach(name string) {
	if crashes.due(name) {
		send(syscall.SIGKILL)
		select {} // nothing after this point may run
	}
	if freezes.due(name) {
		Freeze()
	}
}
