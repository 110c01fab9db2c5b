package operator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
)

// TestWithoutACopyAWordIsTyped: however few they are, and the plan says why.
func TestWithoutACopyAWordIsTyped(t *testing.T) {
	t.Parallel()
	d := &fakeDesk{plan: redrive.Plan{Op: "01J9ZKAA", Items: make([]redrive.Item, 2), Bound: 2, Rate: 20}}
	o := withDesk(t, d)
	letters := make([]redrive.Letter, 2)
	plan := func(kind act.Kind) *act.Plan {
		p, err := o.Plan(t.Context(), act.Order{Kind: kind, Letters: letters})
		require.NoError(t, err)
		return p
	}
	for kind, word := range map[act.Kind]string{act.DiscardLetter: "discard for good", act.PurgeLetters: "purge for good", act.MoveLetters: "move for good"} {
		p := plan(kind)
		require.Equal(t, word, p.Word)
		require.Equal(t, act.Danger, p.Lines[0].Tone)
		require.Contains(t, text(p.Lines), "no copy is kept, ")
		require.NotContains(t, text(p.Lines), "copied and removed")
	}
	d.plan.Ledger = true
	require.Empty(t, plan(act.DiscardLetter).Word, "the ledger has the copy")
	d.plan.Ledger, d.plan.Spool, d.plan.Sealed = false, true, true
	p := plan(act.DiscardLetter)
	require.Empty(t, p.Word)
	require.Contains(t, text(p.Lines), "copied and removed")
	require.Contains(t, text(p.Lines), "copied, sealed, before anything")
}

func TestTheSpoolSaysHowItIs(t *testing.T) {
	t.Parallel()
	d := &fakeDesk{spool: redrive.SpoolState{Folder: "/state/attune/spool", On: true}}
	o := withDesk(t, d)
	ask := func(wish string) *act.Receipt {
		p, err := o.Plan(t.Context(), act.Order{Kind: act.KeepSpool, Values: map[string]string{act.FieldSpool: wish}})
		require.NoError(t, err)
		require.True(t, p.AtOnce)
		r, err := o.Run(t.Context(), p, "", &act.Progress{})
		require.NoError(t, err)
		return r
	}
	r := ask("")
	require.Equal(t, "Copies are kept of what is removed from the broker.", r.Text)
	require.Contains(t, text(r.Lines), "sealed   no")
	require.Contains(t, text(r.Lines), "folder   /state/attune/spool")
	require.Contains(t, text(r.Lines), "holds    nothing yet")

	d.spool.Sealed, d.spool.Key, d.spool.KeyName = true, "/keys/spool", "0badcafe"
	d.spool.Operations, d.spool.Bytes, d.spool.Oldest = 3, 5<<20, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r = ask("off")
	require.False(t, d.spool.On)
	require.Contains(t, r.Text, "No copies are kept in this session")
	require.Contains(t, text(r.Lines), "sealed   with the key 0badcafe in /keys/spool")
	require.Contains(t, text(r.Lines), "holds    3 operations, 5.0 MiB, the oldest of 2026-11-01")
	require.NotContains(t, ask("on").Text, "No copies")
	require.True(t, d.spool.On)

	d.spool = redrive.SpoolState{On: true, Problem: "others can read the key of the spool: chmod 600 /keys/spool", Bytes: 9}
	r = ask("")
	require.Contains(t, r.Text, "nothing is removed")
	require.Contains(t, text(r.Lines), "Others can read the key")
}

func TestASpoolThatCannotBeOpenedIsSaidToBeThere(t *testing.T) {
	t.Parallel()
	d := &fakeDesk{list: []*redrive.Spooled{{}, {Head: redrive.Head{Op: "01J9ZKAAB"}, Trouble: "no spool_key is set"}}}
	o := withDesk(t, d)
	p, err := o.Plan(t.Context(), act.Order{Kind: act.ReadSpool})
	require.NoError(t, err)
	r, err := o.Run(t.Context(), p, "", &act.Progress{})
	require.NoError(t, err)
	require.Equal(t, "2 operations in the spool.", r.Text)
	require.Equal(t, "op 01J9ZKAA cannot be opened: no spool_key is set", text(r.Lines))
}

// TestThePurgeOfTheBrokerIsOfferedForMany: with what it costs, and never taken unasked.
func TestThePurgeOfTheBrokerIsOfferedForMany(t *testing.T) {
	t.Parallel()
	d := &fakeDesk{plan: redrive.Plan{Bound: redrive.PurgeOffered, Spool: true}}
	o := withDesk(t, d)
	plan := func(values map[string]string) *act.Plan {
		p, err := o.Plan(t.Context(), act.Order{Kind: act.PurgeLetters, Letters: make([]redrive.Letter, 1), Values: values})
		require.NoError(t, err)
		return p
	}
	require.NotContains(t, text(plan(nil).Lines), "The broker purges at once")
	d.plan.Bound++
	p := plan(nil)
	require.Contains(t, text(p.Lines), "That takes about 10 s. The broker purges at once (esc, then yes): it also deletes what arrives meanwhile and gives no undo.")
	require.False(t, d.order.Real)
	p = plan(map[string]string{act.FieldReal: "yes"})
	require.True(t, d.order.Real)
	require.Equal(t, "purge for good", p.Word)
	require.Contains(t, text(p.Lines), "deletes all that is ready, 50001 now, and also what arrives meanwhile. No copy is kept: there is no undo.")
	for depth, about := range map[int]string{redrive.PurgeOffered: "", 61_204: "61204 lie there. To copy and remove them takes about 12 s; the broker purges at once"} {
		menu := act.ForBrokerLetters("x", make([]redrive.Letter, 1), nil, depth)
		require.Contains(t, menu.Items[2].About, about)
		require.Equal(t, about == "", menu.Items[2].About == "")
	}
}
