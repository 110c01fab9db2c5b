package monitor

import "context"

// statusChannels are those on which Attune's triggers tell of every change of an
// execution's or a workflow's status.
var statusChannels = []string{"execution_status_changed", "workflow_execution_status_changed"}

// Listen calls changed whenever the status of an execution or of a workflow changes,
// until ctx ends; what is said of it is not read. It has a connection of its own and
// makes another one when that is lost; what happens meanwhile is not heard, so that it
// may only bring forward what is read anyway.
func (m *Monitor) Listen(ctx context.Context, changed func()) {
	m.deps.Store.Listen(ctx, func(string, string) { changed() }, statusChannels...)
}
