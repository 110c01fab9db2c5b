package widget

import "github.com/attune-go/attune/tui/theme"

// Toast is a short report that stands in a corner for a while.
type Toast struct {
	// Role is the colour of its frame: how it went.
	Role  theme.Role
	Title string
	Texts []Text
	Note  string
}

// maxToast bounds how wide and how high a toast is.
const (
	maxToastWidth = 66
	maxToastLines = 7
)

// Lines draws the toast as narrow as its texts allow, at most w cells wide and h
// lines high.
func (t *Toast) Lines(w, h int, th *theme.Theme) []string {
	w = min(w, maxToastWidth)
	body, _ := Window(Paragraphs(t.Texts, w-4, th), 0, min(h-2, maxToastLines), th)
	widest := max(Width(t.Title), Width(t.Note)) + 4
	for _, line := range body {
		widest = max(widest, Width(line))
	}
	return Box(t.Title, t.Note, body, min(w, widest+4), t.Role, th)
}
