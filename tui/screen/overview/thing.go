package overview

import "github.com/attune-go/attune/tui/screen"

// Len is the number of findings.
func (o *Overview) Len() int { return len(o.env.Findings()) }

// Key identifies a finding.
func (o *Overview) Key(i int) string { return o.env.Findings()[i].Text }

// Thing is a finding.
func (o *Overview) Thing(i int) screen.Thing {
	f := o.env.Findings()[i]
	return screen.Thing{Name: "finding", ID: f.Text, Value: f, Command: []string{"alerts", "list"}}
}

// Shows is what the cursor is on.
func (o *Overview) Shows() (screen.Thing, bool) {
	if of := o.here(); of != findings {
		return o.thing(of)
	}
	if o.cursor >= o.Len() {
		return screen.Thing{}, false
	}
	return o.Thing(o.cursor), true
}
