package alerts

import (
	"strings"

	"github.com/attune-go/attune/tui/screen"
)

// thing is the alert or the check of a row.
func thing(r *row) screen.Thing {
	if r.check != nil {
		return screen.Thing{Name: "check " + r.check.Name, ID: r.check.Name, Value: *r.check, Command: []string{"doctor"}}
	}
	if r.found {
		return screen.Thing{Name: "finding", ID: r.text, Value: *r.alert, Command: []string{"alerts", "list"}}
	}
	name := strings.TrimSuffix(r.alert.Rule+" "+r.alert.Target, " ")
	t := screen.Numbered("alert", r.alert.ID, "", "alert", *r.alert)
	t.Name, t.Command = "alert "+name, []string{"alerts", "list"}
	if r.alert.ID == 0 { // judged by the dashboard itself, which writes none
		t.ID, t.Table = name, ""
	}
	return t
}
