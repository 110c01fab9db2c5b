package alerting

import "github.com/attune-go/attune/core/monitor"

// Unwell are the states of workers with a finding.
func Unwell() []monitor.WorkerHealth { return unwell }

// Firing counts the alerts that fire, those behind worse ones left out.
func (a *Alerts) Firing(level Level) (n int) {
	for _, one := range a.Open {
		if one.Severity == level && one.State == AlertFiring && !one.Behind {
			n++
		}
	}
	return n
}
