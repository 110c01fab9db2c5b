package inquiries

import "github.com/attune-go/attune/tui/act"

// Acts is what may be done with the inquiry under the cursor. Until its form is read
// that is not known.
func (v *Inquiries) Acts() (act.Menu, bool) {
	d := v.current()
	if d == nil {
		return act.Menu{}, false
	}
	return act.ForInquiry(d, v.asks(d)), true
}
