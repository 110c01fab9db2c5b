package screen

import (
	"strings"

	"github.com/attune-go/attune/tui/filter"
)

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

// Filtered is the filter of a list that is held in memory. A screen embeds it and
// asks Query of each row.
type Filtered struct {
	fields filter.Schema
	text   string
	query  *filter.Query
}

// NewFiltered makes a filter that lets every row pass.
func NewFiltered(fields filter.Schema) Filtered { return Filtered{fields: fields} }

// Schema is what the rows can be filtered by.
func (f *Filtered) Schema() filter.Schema { return f.fields }

// Filter is the text in place.
func (f *Filtered) Filter() string { return f.text }

// SetQuery puts a filter in place. One that cannot be understood is a *filter.Error
// and leaves the old one.
func (f *Filtered) SetQuery(text string) error {
	query, err := filter.Parse(f.fields, text)
	if err != nil {
		return err
	}
	f.text, f.query = strings.TrimSpace(text), query
	return nil
}

// Matches reports whether a row passes.
func (f *Filtered) Matches(row filter.Row) bool { return f.query.Matches(row) }

// Query is the filter as it was understood; nil lets every row pass.
func (f *Filtered) Query() *filter.Query { return f.query }

// Live is true: nothing has to be read to filter what is held in memory.
func (*Filtered) Live() bool { return true }

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
