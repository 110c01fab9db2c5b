package alerts

import (
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/tui/screen"
)

// known lists the values of a field that were read, whatever the filter in place.
func (v *Alerts) known(field string) []string {
	var known screen.Distinct
	d := v.env.Data
	add := func(r row) {
		switch field {
		case "rule":
			known.Add(r.rule)
		case "view":
			known.Add(string(r.open().Open.View))
		case "measure":
			if r.alert != nil {
				known.Add(r.alert.Measure)
			}
		case "target":
			if r.alert != nil {
				known.Add(r.alert.Target)
			}
		}
	}
	if d.Alerts != nil {
		for _, list := range [][]alerting.Alert{d.Alerts.Open, d.Alerts.Recent} {
			for i := range list {
				add(alertRow(&list[i]))
			}
		}
	}
	if d.Checks != nil {
		for i := range d.Checks.List {
			add(checkRow(&d.Checks.List[i]))
		}
	}
	return known.List()
}
