//go:build crashpoints

package crashpoint

import (
	"fmt"
	"os"
	"sync"
)

// plan is what the environment said when the process started. The one thing
// that this build is for is to die of it.
var plan = func() *countdown {
	at, err := Parse(os.Getenv(Variable))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", Variable, err))
	}
	return &countdown{left: at}
}()

type countdown struct {
	mu   sync.Mutex
	left map[string]int // reaches to go; guarded by mu
}

// Reach says that the process has come to a named moment, and ends the process
// there if the plan says so.
func Reach(name string) {
	plan.mu.Lock()
	defer plan.mu.Unlock()
	left, planned := plan.left[name]
	if !planned {
		return
	}
	if left > 1 {
		plan.left[name] = left - 1
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("die at %s: %v", name, err))
	}
	select {} // nothing after the moment happens
}
