package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/redrive"
	"github.com/attune-go/attune/tui/act"
)

// planSpool reads the spool at once.
func (o *Operator) planSpool(context.Context, act.Order) (*act.Plan, error) {
	if o.cfg.Desk == nil {
		return nil, errNoDesk
	}
	plan := &act.Plan{Title: "Read the spool", AtOnce: true}
	plan.Handle = run(func(context.Context, string) (*act.Receipt, error) {
		list, err := o.cfg.Desk.Spool()
		if err != nil {
			return nil, err
		}
		receipt := &act.Receipt{Text: counted(len(list), "operation", "operations") + " in the spool.", Result: list}
		for _, s := range list {
			if s.Trouble != "" {
				receipt.Lines = append(receipt.Lines, line(act.Warn, "op %.8s cannot be opened: %s", s.Op, s.Trouble))
			}
		}
		return receipt, nil
	})
	return plan, nil
}

// planKeepSpool turns the spool on or off at once, and says how it is then.
func (o *Operator) planKeepSpool(_ context.Context, order act.Order) (*act.Plan, error) {
	if o.cfg.Desk == nil {
		return nil, errNoDesk
	}
	wish := order.Values[act.FieldSpool]
	plan := &act.Plan{Title: strings.TrimSpace("Spool " + wish), AtOnce: true}
	plan.Handle = run(func(context.Context, string) (*act.Receipt, error) {
		if wish != "" {
			o.cfg.Desk.SetSpool(wish == "on")
		}
		return spoolReceipt(o.cfg.Desk.SpoolState()), nil
	})
	return plan, nil
}

func spoolReceipt(s redrive.SpoolState) *act.Receipt {
	r := &act.Receipt{Text: "Copies are kept of what is removed from the broker."}
	switch {
	case !s.On:
		r.Text = "No copies are kept in this session of what is removed from the broker."
		r.Lines = append(r.Lines, line(act.Warn, "What the ledger does not have cannot be put back. :spool on keeps copies again."))
	case s.Folder == "":
		r.Text = "There is no folder for copies, so nothing is removed from the broker."
		r.Lines = append(r.Lines, line(act.Note, "HOME or XDG_STATE_HOME says where it would be."))
	}
	switch {
	case s.Problem != "":
		r.Lines = append(r.Lines, line(act.Danger, "%s", sentence(s.Problem)))
	case s.Sealed:
		r.Lines = append(r.Lines, line(act.Plain, "sealed   with the key %s in %s", s.KeyName, s.Key))
	default:
		r.Lines = append(r.Lines, line(act.Plain, "sealed   no: whoever can read the files can read the bodies"))
	}
	if s.Folder == "" {
		return r
	}
	holds := "nothing yet"
	if s.Operations > 0 {
		holds = fmt.Sprintf("%s, %s, the oldest of %s", counted(s.Operations, "operation", "operations"), size(s.Bytes), s.Oldest.UTC().Format("2006-01-02"))
	}
	r.Lines = append(r.Lines, line(act.Plain, "folder   %s", s.Folder), line(act.Plain, "holds    %s", holds))
	return r
}

// size is a number of bytes for people.
func size(n int64) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case n < kib:
		return counted(n, "byte", "bytes")
	case n < mib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/mib)
	}
}
