package outbox

import (
	"strings"

	"github.com/attune-go/attune/core/broker"
)

// headerPrefix is the prefix of the headers that a trace may name.
const headerPrefix = "x-attune-"

// HeaderTrace is a trace that the relay publishes as a header of the message. The name must begin
// with x-attune-; a trace without it stays in the table only.
func HeaderTrace(name, value string) string { return name + "=" + value }

// headers returns the header of a trace, or nil.
func headers(trace string) broker.Table {
	name, value, ok := strings.Cut(trace, "=")
	if !ok || !strings.HasPrefix(name, headerPrefix) {
		return nil
	}
	return broker.Table{name: value}
}
