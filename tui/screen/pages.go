package screen

import "slices"

// maxPaged bounds the rows that are kept.
const maxPaged = 10_000

// Pages is a list that is read page by page. A row's place falls from row to row: the id if the newest
// comes first, the negative id if the oldest comes first. Zero is no place.
type Pages[T any] struct {
	place  func(row *T) int64
	rows   []T
	next   int64
	missed int64 // the place of a row to read again
	// deep is true if a search went on below its first page: first pages keep then what it found.
	deep bool
}

// NewPages makes an empty list.
func NewPages[T any](place func(row *T) int64) Pages[T] { return Pages[T]{place: place} }

// Rows are the rows in their order.
func (p *Pages[T]) Rows() []T { return p.rows }

// Next is the place below which rows were not read; zero at the end of the list.
func (p *Pages[T]) Next() int64 { return p.next }

// Forget empties the list.
func (p *Pages[T]) Forget() { p.rows, p.next, p.missed, p.deep = nil, 0, 0, false }

// Deepen says that a search has gone on to another page, which may be empty.
func (p *Pages[T]) Deepen() { p.deep = true }

// Deep reports whether a search has gone on below its first page.
func (p *Pages[T]) Deep() bool { return p.deep }

// Reload replaces the list by its first page. Next is where the next page begins.
func (p *Pages[T]) Reload(page []T, next int64) {
	if p.deep {
		p.Merge(page, 0, next)
		return
	}
	p.rows, p.next, p.missed = page, next, 0
}

// Missing requests that the row at a place is read again, unless the list has it.
func (p *Pages[T]) Missing(place int64) {
	if !slices.ContainsFunc(p.rows, func(row T) bool { return p.place(&row) == place }) {
		p.missed = max(p.missed, place)
	}
}

// Before is the place below which a page must be read for the missing row; zero if none is missing.
func (p *Pages[T]) Before() int64 {
	if p.missed == 0 {
		return 0
	}
	return p.missed + 1
}

// Merge takes over a page: all rows below from, down to next. A from of zero begins the list, a next of
// zero ends it. Rows around the page stay, but a first page with a gap below it replaces the list.
func (p *Pages[T]) Merge(page []T, from, next int64) {
	above, below := p.rows[:0:0], p.rows[:0:0]
	for _, row := range p.rows {
		at := p.place(&row)
		switch {
		case from != 0 && at >= from:
			above = append(above, row)
		case next != 0 && at < next:
			below = append(below, row)
		}
	}
	keep := p.deep && from == 0
	if from == 0 && len(below) > 0 && len(below) == len(p.rows) && !keep {
		below = nil
	}
	if len(below) == 0 && !keep || from != 0 && from == p.next {
		p.next = next
	}
	if p.missed != 0 && (next == 0 || p.missed >= next) && (from == 0 || p.missed < from) {
		p.missed = 0
	}
	p.rows = slices.Concat(above, page, below)
	if over := len(p.rows) - maxPaged; over > 0 && from == 0 {
		p.rows = p.rows[:maxPaged]
		p.next = p.place(&p.rows[maxPaged-1])
	} else if over > 0 {
		p.rows = p.rows[over:]
	}
}
