package outbox

import (
	"strings"

	"github.com/attune-go/attune/core/broker"
)

// headerPrefix begins the headers that a trace may name.
const headerPrefix = "x-attune-"

// HeaderTrace is a trace that the relay publishes as a header of the message: what
// caused it, for whoever looks at the message itself. The name must begin with
// x-attune-; without it the trace is kept in the table only, like every other.
func HeaderTrace(name, value string) string { return name + "=" + value }

// headers are what a trace adds to a message; nil if nothing.
func headers(trace string) broker.Table {
	name, value, ok := strings.Cut(trace, "=")
	if !ok || !strings.HasPrefix(name, headerPrefix) {
		return nil
	}
	return broker.Table{name: value}
}
