package execution

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// The sections below the timeline.
const (
	sectionConfig = iota
	sectionResult
	sectionEnv
	sectionHistory
	sectionLetters
	sectionRaw
)

var sections = []string{"config", "result", "env", "history", "dead letter", "raw"}

// isDocument reports whether a section is a JSON document.
func isDocument(section int) bool { return section != sectionHistory && section != sectionLetters }

// document is the view of the section in sight; nil where that is no document.
func (x *Execution) document() *jsonview.View {
	if !isDocument(x.section) || x.why {
		return nil
	}
	if x.documents[x.section] == nil {
		x.documents[x.section] = jsonview.New()
	}
	return x.documents[x.section]
}

// prepare puts the text of the section in sight into its view.
func (x *Execution) prepare() {
	d, view := x.current(), x.document()
	if d == nil || view == nil {
		return
	}
	switch x.section {
	case sectionConfig:
		view.Set(d.Config)
	case sectionResult:
		view.Set(d.Result)
	case sectionEnv:
		view.Set(d.Env)
	default:
		view.Set(raw(d))
	}
}

// raw is all that was read of an execution as one document. A document that was
// cut stays the text it is.
func raw(d *monitor.ExecutionDetail) string {
	plain := *d
	plain.Reading, plain.Config, plain.Env, plain.Result = monitor.Reading{}, "", "", ""
	whole := struct {
		monitor.ExecutionDetail

		Sources json.RawMessage `json:"sources,omitempty"`
		Config  any             `json:"config,omitempty"`
		Env     any             `json:"env_vars,omitempty"`
		Result  any             `json:"result,omitempty"`
	}{ExecutionDetail: plain, Config: embedded(d.Config), Env: embedded(d.Env), Result: embedded(d.Result)}
	text, err := json.Marshal(whole)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func embedded(text string) any {
	switch {
	case text == "":
		return nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	default:
		return jsonview.Redact(text)
	}
}

// Search looks for a text in the document in sight. Where none is, the config is
// turned to.
func (x *Execution) Search(text string) int {
	x.turned = x.turned || text != "" // so that what is found is in sight
	if x.document() == nil {
		if text == "" {
			return 0
		}
		x.why = false
		x.section, x.scroll = sectionConfig, 0
		x.prepare()
	}
	return x.document().Search(text)
}

// Query is the text that is looked for.
func (x *Execution) Query() string {
	if view := x.document(); view != nil {
		return view.Query()
	}
	return ""
}

// Hide masks what was revealed.
func (x *Execution) Hide() {
	for _, view := range x.documents {
		if view != nil {
			view.Hide()
		}
	}
}

func (x *Execution) turn(n int) {
	x.Hide()
	if !x.low || x.turned { // else the first one comes in place of the timeline
		x.section = (x.section + n + len(sections)) % len(sections)
	}
	x.turned = true
	x.scroll, x.why = 0, false
	x.prepare()
}

// sectionLines draws the names of the sections and the one in sight.
func (x *Execution) sectionLines(d *monitor.ExecutionDetail, w, h int) []string {
	if h < 2 {
		return nil
	}
	x.visible = h - 1
	var body []string
	note := ""
	if view := x.document(); view != nil {
		x.prepare()
		body, note = view.Lines(w-1, h-1, x.env.Theme), view.Status()
		if len(body) == 0 {
			body = []string{" " + x.env.Paint(theme.Dim, "no "+sections[x.section])}
		}
	} else {
		body = x.listLines(d, w-2)
		if len(body) > x.visible {
			note = strconv.Itoa(len(body)) + " lines"
		}
		x.scroll = max(0, min(x.scroll, len(body)-x.visible))
		body = body[x.scroll:min(len(body), x.scroll+x.visible)]
	}
	return append([]string{widget.Spread(x.tabs(), note, w-1)}, body...)
}

func (x *Execution) tabs() string {
	var tabs []string
	for i, name := range sections {
		if i == x.section {
			name = x.env.Paint(theme.Accent, "["+name+"]")
		}
		tabs = append(tabs, name)
	}
	return " " + strings.Join(tabs, " · ")
}

// listLines is a section that is no document.
func (x *Execution) listLines(d *monitor.ExecutionDetail, w int) []string {
	if x.section == sectionLetters {
		return x.letterLines(w)
	}
	lines := x.timeline(d, 1<<20)[1:]
	return append(lines, x.attemptLines()...)
}

// family is what the execution has to do with, once it was read.
func (x *Execution) family() *monitor.Family {
	if f := x.env.Data.Family; f != nil && f.ID == x.id {
		return f
	}
	return nil
}

// attemptLines lists the attempts of the chain that the execution is in.
func (x *Execution) attemptLines() []string {
	e, f := x.env, x.family()
	if f == nil || len(f.Attempts) < 2 {
		return nil
	}
	lines := []string{" " + e.Paint(theme.Dim, "ATTEMPTS")}
	for _, a := range f.Attempts {
		mark := " "
		if a.ID == x.id {
			mark = e.Theme.Glyphs.Cursor
		}
		look := e.Theme.Of(a.Status)
		why := widget.Clean(a.Reason)
		if a.RequestedBy != "" {
			why += " by " + widget.Clean(a.RequestedBy)
		}
		lines = append(lines, " "+mark+widget.Right(strconv.FormatInt(a.Number, 10), 3)+"  "+widget.Left(strconv.FormatInt(a.ID, 10), 10)+
			e.Paint(look.Role, look.Glyph+" "+widget.Left(widget.Clean(a.Status), 11))+widget.Left(a.Created.UTC().Format("15:04:05"), 10)+
			widget.Left(why, 22)+" "+widget.Clean(a.Error))
	}
	return lines
}

// letterLines lists the dead letters of the execution.
func (x *Execution) letterLines(w int) []string {
	e, f := x.env, x.family()
	switch {
	case f == nil:
		return e.Missing(screen.FeedFamily, "its dead letters", w)
	case f.Letters == nil:
		return []string{" No ledger of dead letters is kept here, or it has none of this execution."}
	case len(f.Letters) == 0:
		return []string{" No dead letter was about this execution."}
	}
	var lines []string
	for i := range f.Letters {
		l := &f.Letters[i]
		lines = append(lines, " "+e.Paint(theme.Strong, "dead letter "+strconv.FormatInt(l.ID, 10))+"  "+widget.Clean(l.What)+"  "+
			e.Paint(theme.Warn, widget.Clean(l.Reason))+"  "+widget.Clean(l.Decision))
		if l.Detail != "" {
			for _, part := range widget.Wrap(l.Detail, max(20, w-3)) {
				lines = append(lines, "   "+part)
			}
		}
		lines = append(lines, "   "+e.Paint(theme.Dim, "stored ")+l.At.UTC().Format("2006-01-02 15:04:05Z")+e.Paint(theme.Dim, "  queue ")+
			widget.Clean(l.Queue)+e.Paint(theme.Dim, "  then ")+widget.Clean(l.StatusThen))
		lines = append(lines, "")
	}
	return append(lines, " "+e.Paint(theme.Dim, "o d opens the newest of them"))
}

// documentAction gives an action to the document in sight.
func (x *Execution) documentAction(action keymap.Action) bool {
	view := x.document()
	return view != nil && view.Do(action)
}
