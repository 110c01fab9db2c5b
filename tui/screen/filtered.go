package screen

import "github.com/attune-go/attune/tui/filter"

// Queryable is a screen that is filtered in the language of package filter.
type Queryable interface {
	Filterable
	// Schema is what its rows can be filtered by.
	Schema() filter.Schema
	// Known lists values of a field that are known now, to complete with.
	Known(field string) []string
	// Live reports whether a filter can be tried while it is typed, since nothing has
	// to be read for it.
	Live() bool
}

// Distinct collects values without repeating them, in the order they come.
type Distinct struct {
	list []string
	seen map[string]bool
}

// Add takes a value; empty ones are left out.
func (d *Distinct) Add(values ...string) {
	for _, v := range values {
		if v == "" || d.seen[v] {
			continue
		}
		if d.seen == nil {
			d.seen = map[string]bool{}
		}
		d.seen[v] = true
		d.list = append(d.list, v)
	}
}

// List is what was added.
func (d *Distinct) List() []string { return d.list }
