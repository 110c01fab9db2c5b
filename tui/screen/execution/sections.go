package execution

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// The sections below the timeline.
const (
	sectionOutput = iota
	sectionConfig
	sectionResult
	sectionEnv
	sectionHistory
	sectionDeadLetters
	sectionRaw
)

var sections = []string{"output", "config", "result", "env", "history", "dead letter", "raw"}

// document is the view of the section; nil for a list.
func (x *Execution) document() *jsonview.View {
	if x.section == sectionHistory || x.section == sectionDeadLetters || x.why {
		return nil
	}
	return x.documents[x.section]
}

// prepare puts the text of the section into its view.
func (x *Execution) prepare() {
	d, view := x.current(), x.document()
	if d == nil || view == nil {
		return
	}
	switch x.section {
	case sectionOutput:
		view.SetText(output(d.Result))
	case sectionConfig:
		view.Set(d.Config)
	case sectionResult:
		view.Set(d.Result)
	case sectionEnv:
		view.Set(d.Env)
	default:
		view.Set(string(Document(d)))
	}
}

// choose opens the section that explains an execution: the output of a failed one, or the result of one without
// parameters.
func (x *Execution) choose(d *monitor.ExecutionDetail) {
	if x.chosen || x.preview {
		return
	}
	x.chosen = true
	switch {
	case x.env.Theme.Of(d.Status).Role == theme.Bad && output(d.Result) != "":
		x.section = sectionOutput
	case d.Config == "" && d.Result != "":
		x.section = sectionResult
	}
}

// output is what the program of an execution wrote, in the order in which it explains a failure: what it wrote to
// stderr, then to stdout. It is empty if the program wrote nothing. The result may be cut anywhere.
func output(result string) string {
	texts, cut := map[string]string{}, map[string]string{}
	decoder := json.NewDecoder(strings.NewReader(result))
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		name, _ := decoder.Token()
		key, _ := name.(string)
		rest := result[decoder.InputOffset():]
		var value any
		if err = decoder.Decode(&value); err != nil {
			value = beginning(strings.TrimLeft(rest, ": \t\n"))
			cut[key] = ", its end was not read"
		}
		if text, ok := value.(string); ok {
			texts[key] = text
		}
		if flag, truncated := strings.CutSuffix(key, "_truncated"); truncated && value == true {
			cut[flag] = ", cut by the worker"
		}
	}
	var b strings.Builder
	for _, stream := range []struct{ name, key string }{{"stderr", "stderr_log"}, {"stdout", "stdout"}} {
		if text := texts[stream.key]; text != "" {
			b.WriteString("── " + stream.name + cmp.Or(cut[stream.name], cut[stream.key]) + " ──\n" +
				strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	return b.String()
}

// beginning decodes a JSON string whose end is missing; empty if it is no string.
func beginning(text string) string {
	const longestEscape = len(`\ud83d\ude00`)
	var said string
	for n := 0; strings.HasPrefix(text, `"`) && n < min(len(text), longestEscape); n++ {
		if json.Unmarshal([]byte(text[:len(text)-n]+`"`), &said) == nil {
			break
		}
	}
	return said
}

// Document is an execution with its documents embedded as JSON, so that secrets in them are found. A
// document that was cut is no JSON and stays a text.
func Document(d *monitor.ExecutionDetail) json.RawMessage {
	plain := *d
	plain.Reading, plain.Config, plain.Env, plain.Result = monitor.Reading{}, "", "", ""
	text, err := json.Marshal(struct {
		monitor.ExecutionDetail

		Sources json.RawMessage `json:"sources,omitempty"`
		Config  any             `json:"config,omitempty"`
		Env     any             `json:"env_vars,omitempty"`
		Result  any             `json:"result,omitempty"`
	}{ExecutionDetail: plain, Config: embedded(d.Config), Env: embedded(d.Env), Result: embedded(d.Result)})
	if err != nil {
		return json.RawMessage(err.Error())
	}
	return text
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

// Search looks for a text in the document, or in the config if the section is a list.
func (x *Execution) Search(text string) int {
	x.turned = x.turned || text != "" // the match must be visible in a low window
	if x.document() == nil {
		if text == "" {
			return 0
		}
		x.why, x.section, x.scroll = false, sectionConfig, screen.Scroller{}
		x.prepare()
	}
	return x.document().Search(text)
}

// Query is the searched text.
func (x *Execution) Query() string {
	if view := x.document(); view != nil {
		return view.Query()
	}
	return ""
}

// Hide masks revealed secrets.
func (x *Execution) Hide() {
	for _, view := range x.documents {
		view.Hide()
	}
}

func (x *Execution) turn(n int) {
	x.Hide()
	if !low(x.env.Width, x.env.Height) || x.turned { // else the first section replaces the timeline
		x.section = (x.section + n + len(sections)) % len(sections)
	}
	x.turned, x.why, x.scroll = true, false, screen.Scroller{}
	x.prepare()
}

// SetSize fits the document in the chosen section into a body of w by h cells.
func (x *Execution) SetSize(w, h int) {
	d, view := x.current(), x.document()
	if d == nil || view == nil {
		return
	}
	if _, sw, sh := x.above(d, w, h); sh >= 2 {
		view.SetSize(sw-1, max(1, sh-1-len(x.cutLine(d))))
	}
}

// sectionLines draws the names of the sections and the chosen section.
func (x *Execution) sectionLines(d *monitor.ExecutionDetail, w, h int) []string {
	if h < 2 {
		return nil
	}
	var body []string
	note := ""
	if view := x.document(); view != nil {
		body, note = view.Lines(w-1, h-1, x.env.Theme), view.Status()
		if len(body) == 0 {
			body = []string{" " + x.env.Dim("no "+sections[x.section])}
		}
		body = append(x.cutLine(d), body[:min(len(body), max(1, h-1-len(x.cutLine(d))))]...)
	} else {
		body = x.listLines(d, w-2)
		if len(body) > h-1 {
			note = strconv.Itoa(len(body)) + " lines"
		}
		body, _ = x.scroll.Shown(body, h-1)
	}
	return append([]string{widget.Spread(" "+x.env.Tabs(sections, x.section, w-2), note, w-1)}, body...)
}

// cutLine says how much of the document in the section was read, unless all of it was.
func (x *Execution) cutLine(d *monitor.ExecutionDetail) []string {
	part, whole := "", int64(0)
	switch x.section {
	case sectionConfig:
		part, whole = d.Config, d.ConfigBytes
	case sectionResult:
		part, whole = d.Result, d.ResultBytes
	case sectionEnv:
		part, whole = d.Env, d.EnvBytes
	default:
		part = d.Config + d.Env + d.Result
		whole = cmp.Or(d.ConfigBytes, int64(len(d.Config))) + cmp.Or(d.EnvBytes, int64(len(d.Env))) +
			cmp.Or(d.ResultBytes, int64(len(d.Result)))
	}
	if whole <= int64(len(part)) {
		return nil
	}
	return []string{" " + x.env.Paint(theme.Warn, phrase.Part(len(part), whole)+", e writes all")}
}

// listLines is a section that is a list: the history with the attempts of the chain, or the dead letters.
func (x *Execution) listLines(d *monitor.ExecutionDetail, w int) []string {
	if x.section == sectionDeadLetters {
		return x.deadLetterLines(w)
	}
	e, f := x.env, x.family()
	lines := x.timeline(d, 1<<20)[1:]
	if f == nil || len(f.Attempts) < 2 {
		return lines
	}
	lines = append(lines, " "+e.Dim("ATTEMPTS"))
	for _, a := range f.Attempts {
		why := widget.Clean(a.Reason)
		if a.RequestedBy != "" {
			why += " by " + widget.Clean(a.RequestedBy)
		}
		lines = append(lines, " "+x.mark(a.ID)+widget.Right(strconv.FormatInt(a.Number, 10), 3)+"  "+
			widget.Left(strconv.FormatInt(a.ID, 10), 10)+
			e.Look(e.Theme.Of(a.Status), " "+widget.Left(widget.Clean(a.Status), 11))+
			widget.Left(screen.TimeOfDay(a.Created), 10)+widget.Left(why, 22)+" "+widget.Clean(a.Error))
	}
	return lines
}

// mark points at the shown execution among others.
func (x *Execution) mark(id int64) string {
	if id == x.id {
		return x.env.Theme.Glyphs.Cursor
	}
	return " "
}

func (x *Execution) deadLetterLines(w int) []string {
	e, f := x.env, x.family()
	switch {
	case f == nil:
		return e.Missing(screen.FeedFamily, "its dead letters", w)
	case f.DeadLetters == nil:
		return []string{" This installation has no ledger of dead letters: `attune-executor migrate up` adds it."}
	case len(f.DeadLetters) == 0:
		return []string{" This execution has no dead letter."}
	}
	var lines []string
	for i := range f.DeadLetters {
		l := &f.DeadLetters[i]
		lines = append(lines, " "+e.Paint(theme.Strong, "dead letter "+strconv.FormatInt(l.ID, 10))+"  "+
			widget.Clean(l.What)+"  "+e.Paint(theme.Warn, widget.Clean(l.Reason))+"  "+widget.Clean(l.Decision))
		if l.Detail != "" {
			for _, part := range widget.Wrap(l.Detail, max(20, w-3)) {
				lines = append(lines, "   "+part)
			}
		}
		lines = append(lines, "   "+e.Dim("stored ")+l.At.UTC().Format("2006-01-02 15:04:05Z")+e.Dim("  queue ")+
			widget.Clean(l.Queue)+e.Dim("  then ")+widget.Clean(l.StatusThen), "")
	}
	return append(lines, " "+e.Dim("o d opens the newest one"))
}
