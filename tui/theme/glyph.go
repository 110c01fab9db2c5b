package theme

import "strings"

// Glyphs are the signs of states. Each is one cell wide.
type Glyphs struct {
	OK, Busy, Idle, Done, Failed, Scheduled, Queued, Timeout string
	Paused, Warning, Critical, Cursor                        string
	// Rest is the cursor of a list without the focus.
	Rest                      string
	Dot, Arrow, Frozen, Again string
	// Last is a worker that is chosen last.
	Last string
	// Beat is a minute with heartbeats.
	Beat string
	// Space separates groups of three digits.
	Space string
	// Levels are the steps of a sparkline from empty to full.
	Levels []string
	// Braille draws charts in dots, two values a cell.
	Braille bool
	// The parts of the axis of a chart.
	AxisZero, AxisTick, AxisLine string
}

var glyphs = Glyphs{
	OK: "●", Busy: "◐", Idle: "○", Done: "✓", Failed: "✗", Scheduled: "◌", Queued: "⧗", Timeout: "◷",
	Paused: "‖", Warning: "▲", Critical: "■", Cursor: "▶", Rest: "▸",
	Dot: "·", Arrow: "→", Frozen: "▣", Again: "↺", Last: "▽", Beat: "▏", Space: "\u2009",
	Levels:   []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	AxisZero: "┼", AxisTick: "┤", AxisLine: "─",
}

// PerCell is the number of values in a cell of a chart.
func (g *Glyphs) PerCell() int {
	if g.Braille {
		return 2
	}
	return 1
}

// ascii replaces every sign of the dashboard with one of the same width. Text of rows is not touched.
var ascii = strings.NewReplacer(
	"●", "*", "◐", "%", "○", "o", "✓", "+", "✗", "x", "◌", "~", "⧗", ":", "◷", "@", "‖", "=", "▣", "=",
	"▲", "!", "■", "#", "▶", ">", "─", "-", "│", "|", "↑", "^", "↓", "v", "…", ".", "·", ".",
	"→", ">", "↺", "&", "▽", "v", "›", ">", "\u2009", " ", "┼", "+", "┤", "|", "Δ", "d", "⇧", "^", "≤", "<", "‹", "<",
	"×", "x",
	"▏", "|", "┌", "+", "┐", "+", "└", "+", "┘", "+", "├", "+", "▌", "_", "░", ".", "▾", "v", "▸", ">",
	"▁", "_", "▂", ".", "▃", ".", "▄", ":", "▅", "-", "▆", "=", "▇", "+", "█", "#",
)

// Finish makes a frame ready for the terminal: it replaces glyphs if the theme is ASCII.
func (t *Theme) Finish(frame string) string {
	if !t.ascii {
		return frame
	}
	return ascii.Replace(frame)
}

// State is the glyph and colour of a state, such as the status of an execution.
type State struct {
	Glyph string
	Role  Role
}

// Of returns the look of a state. An unknown one gets a neutral dot.
func (t *Theme) Of(state string) State {
	g := &t.Glyphs
	switch state {
	case "running", "active", "ok":
		return State{g.OK, Good}
	case "busy":
		return State{g.Busy, Warn}
	case "completed", "done", "responded":
		return State{g.Done, Good}
	case "failed", "stale", "deaf", "suspect", "unhealthy", "error", "lost":
		return State{g.Failed, Bad}
	case "scheduled", "scheduling", "canceling", "ready":
		return State{g.Scheduled, Plain}
	case "requested", "queued", "pending", "waiting":
		return State{g.Queued, Plain}
	case "timeout":
		return State{g.Timeout, Bad}
	case "cancelled", "idle", "skipped":
		return State{g.Idle, Dim}
	case "abandoned", "critical":
		return State{g.Critical, Bad}
	case "paused", "cordoned", "draining":
		return State{g.Paused, Warn}
	case "degraded":
		return State{g.Last, Warn}
	case "inactive":
		return State{g.Failed, Dim}
	case "warning":
		return State{g.Warning, Warn}
	default:
		return State{g.Dot, Plain}
	}
}
