// Package record shows one record that has no view of its own: an enforcement, an
// event, a rule. Every number in it that names something opens.
package record

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/attune-go/attune/tui/jsonview"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
)

// Record is the view.
type Record struct {
	env  *screen.Env
	ref  screen.RecordRef
	view *jsonview.View
}

// New makes the view.
func New(env *screen.Env) *Record { return &Record{env: env, view: jsonview.New()} }

// View is the name of the screen.
func (*Record) View() screen.View { return keymap.InRecord }

// Feeds is what the view needs polled.
func (*Record) Feeds() []screen.Feed { return []screen.Feed{screen.FeedRecord} }

// Ref is the record in sight.
func (r *Record) Ref() screen.RecordRef { return r.ref }

// Show turns to a record.
func (r *Record) Show(ref screen.RecordRef) {
	if ref == r.ref {
		return
	}
	r.ref = ref
	r.view.Reset()
	r.env.Data.Record = nil
}

// Shown names the record in sight.
func (r *Record) Shown() string { return string(r.ref.Kind) + "\x00" + r.ref.Name }

// ShowAgain turns back to a record.
func (r *Record) ShowAgain(name string) {
	if kind, name, ok := strings.Cut(name, "\x00"); ok {
		r.Show(screen.RecordRef{Kind: screen.RecordKind(kind), Name: name})
	}
}

// Title is the text of the title rule.
func (r *Record) Title() (left, right string) {
	return "Record › " + string(r.ref.Kind) + " " + r.ref.Name, r.view.Status()
}

// Changed takes over what was read.
func (r *Record) Changed(feed screen.Feed) {
	if d := r.env.Data.Record; feed == screen.FeedRecord && d != nil && d.RecordRef == r.ref {
		r.view.Set(string(d.Body))
	}
}

// Do carries out an action.
func (r *Record) Do(action keymap.Action) screen.Effect {
	if action == keymap.Open {
		return r.open()
	}
	return screen.Effect{Handled: r.view.Do(action)}
}

// Search looks for a text.
func (r *Record) Search(text string) int { return r.view.Search(text) }

// Query is the text that is looked for.
func (r *Record) Query() string { return r.view.Query() }

// Hide masks what was revealed.
func (r *Record) Hide() { r.view.Hide() }

// Select puts the cursor on a line of the body.
func (r *Record) Select(line int) bool { return r.view.Select(line) }

// open turns to what the value under the cursor names.
func (r *Record) open() screen.Effect {
	at, text, ok := r.view.Value()
	if !ok {
		return screen.Effect{Handled: true}
	}
	if to, ok := Names(at, text); ok {
		return to
	}
	return screen.Effect{Handled: true, Note: "What is under the cursor names nothing that can be opened."}
}

var (
	executionKey = regexp.MustCompile(`^(execution(_id)?|parent|original_execution|repeated_by|repeats|workflow_execution_of)$`)
	recordKeys   = map[string]screen.RecordKind{
		"enforcement": screen.RecordEnforcement, "enforcement_id": screen.RecordEnforcement,
		"event": screen.RecordEvent, "event_id": screen.RecordEvent, "rule_ref": screen.RecordRule, "rule": screen.RecordRule,
	}
)

// Names says what the value at a path of a document names, by its key.
func Names(at, text string) (screen.Effect, bool) {
	key := path.Base(at)
	id, err := strconv.ParseInt(text, 10, 64)
	switch {
	case executionKey.MatchString(key) && err == nil && id > 0:
		return screen.OpenExecution(id), true
	case key == "dead_letter" && err == nil && id > 0:
		return screen.OpenLetter(id), true
	case recordKeys[key] != "" && text != "" && text != "null" && text != "0" && !strings.HasPrefix(text, "{"):
		return screen.OpenRecord(recordKeys[key], text), true
	case (key == "worker_id" || key == "worker") && err == nil && id > 0:
		return screen.OpenWorker(id), true
	case key == "action_ref":
		return screen.Effect{Handled: true, Open: keymap.InQueues, Filter: text}, true
	default:
		return screen.Effect{}, false
	}
}

// Relations are the things that the record names.
func (r *Record) Relations() (title string, list []screen.Relation, ok bool) {
	letters := map[string]string{"execution": "x", "event": "v", "rule_ref": "u", "enforcement": "e", "worker_id": "w", "action_ref": "q"}
	for _, named := range r.view.Members() {
		key := path.Base(named.Path)
		to, opens := Names(named.Path, named.Text)
		if letters[key] == "" || !opens {
			continue
		}
		list = append(list, screen.Relation{Key: letters[key], Label: strings.TrimSuffix(strings.TrimSuffix(key, "_ref"), "_id"), Help: named.Text, To: to})
		delete(letters, key)
	}
	return string(r.ref.Kind) + " " + r.ref.Name, list, len(list) > 0
}

// Render draws the view.
func (r *Record) Render(w, h int) []string {
	d := r.env.Data.Record
	if d == nil || d.RecordRef != r.ref {
		return r.env.Missing(screen.FeedRecord, string(r.ref.Kind)+" "+r.ref.Name, w)
	}
	lines := r.view.Lines(w, max(1, h-1), r.env.Theme)
	for len(lines) < h-1 {
		lines = append(lines, "")
	}
	return append(lines, r.env.Paint(theme.Dim, " enter opens what is named under the cursor; o lists all that is named"))
}
