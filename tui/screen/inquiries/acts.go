package inquiries

import (
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/screen"
)

// Acts is what may be done with the inquiries that are marked, else with the one under
// the cursor, whose form the answer of all of them has. Until that is read it is not
// known.
func (v *Inquiries) Acts() (act.Menu, bool) {
	d := v.current()
	if d == nil {
		return act.Menu{}, false
	}
	menu := act.ForInquiry(d, v.asks(d))
	if keys := v.table.Marked(); len(keys) > 0 && !v.detail {
		menu = act.ForMarkedInquiries(screen.Targets(keys), menu)
	}
	return menu, true
}
