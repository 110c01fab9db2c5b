package devstack

import (
	"context"
	"os"
)

// DirDefault is where programs look for a stack when nothing names servers.
const DirDefault = ".attune/stack"

// Variables lists what points a program at the stack in the folder, and nothing
// when none runs there.
func Variables(ctx context.Context, dir string) []string {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	stack, err := Attach(ctx, Config{Dir: dir})
	if err != nil || !stack.Status().Running() {
		return nil
	}
	return []string{
		"ATTUNE__DATABASE__URL=" + stack.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + stack.ManagementURL(),
	}
}
