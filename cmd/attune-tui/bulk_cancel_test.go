package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/lab/testkit"
)

// TestExecutionsOfOneCustomerAreCancelledByKeys cancels the 300 executions of tenant t7 among 1,000 waiting ones: first
// a range of ids, then the rest.
func TestExecutionsOfOneCustomerAreCancelledByKeys(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "cancel hundreds by keys; a script has it by command")
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
	// hide two columns to make room
	x.press("c", "j", "j", "j", "Space", "j", "j", "j", "j", "Space", "Escape")
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
	require.Equal(t, 60, testkit.Count(t, st,
		`select count(*) from execution where status = 'cancelled' and config ->> 'tenant' = 't7' and id <= 200`))
	x.press("/", "C-u")
	x.call("send-keys", "-l", "status:requested param.tenant:t7")
	x.press("Enter")
	x.shows("200 of 240 loaded")
	x.press("*")
	x.shows("240 marked")
	x.plansMarked(act.CancelExecution, "Cancel 240 executions")
	x.types("cancel 240", "Cancel 240 executions")
	require.Equal(t, 300, testkit.Count(t, st,
		`select count(*) from execution where status = 'cancelled' and config ->> 'tenant' = 't7'`))
	require.Equal(t, 700, testkit.Count(t, st, `select count(*) from execution where status = 'requested'`))
}
