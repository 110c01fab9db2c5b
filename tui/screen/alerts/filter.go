package alerts

import (
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/screen"
)

var fields = filter.Schema{
	{Name: "rule", Kind: filter.Text, Help: "its rule, or the name of a check; a star stands for anything"},
	{Name: "level", Kind: filter.Word, Values: []string{"critical", "warning", "info", "pending", "explained", "check"}, Help: "how bad it is"},
	{Name: "target", Kind: filter.Within, Help: "what it is about"},
	{Name: "measure", Kind: filter.Text, Help: "what is measured"},
	{Name: "view", Kind: filter.Text, Help: "the view that it leads to"},
	{Name: "state", Kind: filter.Word, Values: []string{"open", "acked", "muted", "cleared"}, Help: "whether it lasts, and what was done about it here"},
	{Name: "age", Kind: filter.Age, Help: "since when it lasts"},
	{Name: "seen", Kind: filter.Number, Help: "how often it fired within a day"},
}

// Known lists the values of a field that were read, whatever the filter in place.
func (v *Alerts) Known(field string) []string {
	var known screen.Distinct
	d := v.env.Data
	add := func(r row) {
		switch field {
		case "rule", "measure", "view":
			known.Add(asking{v, &r}.Texts(field)...)
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

// asking is a row as filters see it.
type asking struct {
	v *Alerts
	r *row
}

// Texts are the texts of a field.
func (a asking) Texts(field string) []string {
	r := a.r
	switch field {
	case "":
		return []string{r.rule, r.text, r.target}
	case "rule":
		return []string{r.rule}
	case "target":
		if r.check != nil {
			return r.check.Objects
		}
		return []string{r.target}
	case "level":
		if r.check != nil {
			return []string{"check"}
		}
		return []string{r.class()}
	case "state":
		return []string{a.state()}
	case "measure":
		if r.alert != nil {
			return []string{r.alert.Measure}
		}
	case "view":
		return []string{string(r.open().Open)}
	}
	return nil
}

func (a asking) state() string {
	e, r := a.v.env, a.r
	switch {
	case r.alert != nil && r.alert.Cleared != nil:
		return "cleared"
	case e.Quiet.MutedFor(r.key, e.Clock) > 0:
		return "muted"
	case e.Quiet.Acked(r.key):
		return "acked"
	default:
		return "open"
	}
}

// Number is the number of a field.
func (a asking) Number(field string) (float64, bool) {
	if a.r.alert == nil {
		return 0, false
	}
	if field == "age" {
		return a.v.age(a.r).Seconds(), true
	}
	return float64(a.r.alert.Times), a.r.alert.Times > 0
}
