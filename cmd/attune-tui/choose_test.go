package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
	"github.com/attune-go/attune/tui/act"
)

// TestExecutionsOfOneCustomerAreCancelledByKeys: of 1,000 that wait, the 60 of tenant t7
// in a range of ids are marked and cancelled, and no other.
func TestExecutionsOfOneCustomerAreCancelledByKeys(t *testing.T) {
	t.Parallel()
	url := testkit.Database(t)
	st := testkit.OpenStore(t, url)
	action := testkit.Action(t, st, "shop.bill")
	testkit.Exec(t, st, `insert into execution (action, action_ref, config)
		select $1, 'shop.bill', jsonb_build_object('tenant', case when g % 10 < 3 then 't7' else 't' || g % 5 end, 'n', g)
		from generate_series(1, 1000) g`, action.ID)
	x := openTerminal(t, url, "--view", "executions")
	x.shows(" RW ")
	x.press("/")
	x.call("send-keys", "-l", "status:requested param.tenant:t7")
	x.press("Enter")
	x.shows("200 of 300 loaded")
	x.press("c", "j", "j", "j", "Space", "j", "j", "j", "j", "Space", "Escape") // without the worker and the reason there is room
	x.shows("n=1000 tenant=t7")
	x.press("/")
	x.call("send-keys", "-l", " id:1..200")
	x.press("Enter")
	x.shows("60 loaded")
	x.press("*")
	x.shows("60 marked")
	x.plansMarked(act.CancelExecution, "Cancel 60 executions")
	x.types("cancel 60", "Cancel 60 executions")
	require.Equal(t, 60, testkit.Count(t, st, `select count(*) from execution where status = 'cancelled'`))
	require.Equal(t, 60, testkit.Count(t, st, `select count(*) from execution where status = 'cancelled' and config ->> 'tenant' = 't7' and id <= 200`))
}
