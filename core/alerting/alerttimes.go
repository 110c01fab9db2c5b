package alerting

import (
	"context"
	"fmt"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/store"
)

// alertTimes bounds the alerts that are counted, and the rules and targets they are
// of.
const alertTimes = 2_000

// count says of each alert how often it has fired within a day. What is open fires
// for the first time at least, since when it began may be longer ago.
func (a *Alerts) count(ctx context.Context, tx *store.Tx) error {
	rows, err := tx.CountAlertTimes(ctx, alertTimes)
	if err != nil {
		return fmt.Errorf("count how often alerts have fired: %w", err)
	}
	type about struct{ rule, target string }
	times := make(map[about]int64, len(rows))
	for _, r := range rows {
		times[about{r.Rule, r.Target}] = r.N
	}
	for i := range a.Open {
		one := &a.Open[i]
		if one.Times = times[about{one.Rule, one.Target}]; one.Fired != nil {
			one.Times = max(one.Times, 1)
		}
	}
	for i := range a.Recent {
		a.Recent[i].Times = times[about{a.Recent[i].Rule, a.Recent[i].Target}]
	}
	return nil
}

// measured takes over what the measure of its rule says of an alert.
func (a *Alert) measured(m config.Measure) {
	a.Measure, a.Of, a.Shown = m.Name, m.Each, m.Format(a.Value)
}
