package alerts

import (
	"strings"

	"github.com/attune-go/attune/tui/screen"
)

// Thing is the alert or the check of a row.
func (v *Alerts) Thing(at int) screen.Thing {
	r := v.rows[at]
	if r.check != nil {
		return screen.Thing{Name: "check " + r.check.Name, ID: r.check.Name, Value: *r.check, Command: []string{"doctor"}}
	}
	if r.found {
		return screen.Thing{Name: "finding", ID: r.text, Value: *r.alert, Command: []string{"alerts", "list"}}
	}
	name := strings.TrimSuffix(r.alert.Rule+" "+r.alert.Target, " ")
	thing := screen.Numbered("alert", r.alert.ID, "", "alert", *r.alert)
	thing.Name, thing.Command = "alert "+name, []string{"alerts", "list"}
	if r.alert.ID == 0 { // judged by the dashboard itself, which writes none
		thing.ID, thing.Table = name, ""
	}
	return thing
}
