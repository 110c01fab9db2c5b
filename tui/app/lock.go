package app

import (
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// actingLock says why acting is disabled; empty if it is enabled.
func (m *Model) actingLock() string {
	fresh := m.env.Data.Fresh(screen.FeedAudit)
	audit := m.env.Data.Audit
	switch {
	case m.opts.ReadOnly != "":
		return m.opts.ReadOnly
	case m.readOnly != "":
		return m.readOnly
	case m.opts.Acts == nil:
		return "this dashboard only reads"
	case audit == nil && fresh.Err != nil:
		return "the database has not answered yet: " + widget.Clean(fresh.Err.Error())
	case audit == nil:
		return "the database is being looked at; try again"
	case audit.ReadOnly != "":
		return audit.ReadOnly
	case !audit.Recorded:
		return "this installation has no tables of attune-executor. `attune-executor migrate up` adds them"
	case !audit.Current:
		return "this database lacks tables of this version. `attune-executor migrate` adds them"
	case audit.Adopted && audit.Replicas == 0:
		return "no replica of attune-executor runs on this adopted installation. Start one"
	}
	return ""
}

// mode is RO or RW in the header. It is armed while an act is confirmed or runs.
func (m *Model) mode(armed bool) string {
	switch {
	case m.env.Locked != "":
		return "RO"
	case armed:
		return m.env.Paint(theme.Bad, "RW")
	default:
		return m.env.Paint(theme.Warn, "RW")
	}
}
