package devstack

import (
	"context"
	"os"
)

// DirDefault is where programs look for a stack when nothing names servers.
const DirDefault = ".attune/stack"

// Variables lists what points a program at the stack in the folder, and nothing
// when neither of its servers runs. With one of them down it is still the stack
// that is meant, and the other server's silence is told with its address.
func Variables(ctx context.Context, dir string) []string {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	stack, err := Attach(ctx, Config{Dir: dir})
	if err != nil {
		return nil
	}
	if status := stack.Status(); !status.Postgres.Running && !status.Broker.Running {
		return nil
	}
	return []string{
		"ATTUNE__DATABASE__URL=" + stack.DatabaseURL(),
		"ATTUNE__MESSAGE_QUEUE__URL=" + stack.AMQPURL(),
		"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + stack.ManagementURL(),
	}
}
