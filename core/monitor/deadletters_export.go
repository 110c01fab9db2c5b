package monitor

import (
	"context"
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"

	"github.com/attune-go/attune/core/store"
)

// ExportedLetter is one dead letter as an export holds it: everything that the
// ledger has.
type ExportedLetter struct {
	LedgerEntry
	Fingerprint string          `json:"fingerprint,omitempty"`
	XDeath      json.RawMessage `json:"x_death"`
	Headers     json.RawMessage `json:"headers"`
	Evidence    json.RawMessage `json:"evidence"`
	Updated     time.Time       `json:"updated"`
	// Body is the body if it is UTF-8, else BodyBase64 is.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitempty"`
}

// exportPage is how many letters are looked up at once, exportBytes how many bytes
// of bodies are read at once, unless one is longer.
const (
	exportPage  = 200
	exportBytes = 8 << 20
)

// ExportLetters gives every letter that matches the filter to each, the newest
// first, and at most limit of them if that is above zero. It reads page by page,
// so that its memory does not grow with the ledger; what is stored meanwhile is
// not part of it.
func (m *Monitor) ExportLetters(ctx context.Context, filter DeadLetterFilter, limit int, each func(*ExportedLetter) error) (int, error) {
	filter.Limit = exportPage
	done := 0
	for cursor := int64(0); ; {
		page, err := m.LedgerList(ctx, filter, cursor)
		if err != nil {
			return done, err
		}
		list := page.List
		if limit > 0 {
			list = list[:min(len(list), limit-done)]
		}
		for len(list) > 0 {
			n, err := m.exportSome(ctx, list, each)
			done += n
			if err != nil {
				return done, err
			}
			list = list[n:]
		}
		if page.Next == 0 || limit > 0 && done >= limit {
			return done, nil
		}
		cursor = page.Next
	}
}

// exportSome reads and gives away as many of the first letters as fit in memory.
func (m *Monitor) exportSome(ctx context.Context, list []LedgerEntry, each func(*ExportedLetter) error) (int, error) {
	ids, bytes := []int64{list[0].ID}, list[0].Size
	for _, next := range list[1:] {
		if bytes += next.Size; bytes > exportBytes {
			break
		}
		ids = append(ids, next.ID)
	}
	var letters []wholeLetter
	err := m.Read(ctx, "dead letters", &Reading{}, func(ctx context.Context, tx *store.Tx, _ Shape) (err error) {
		letters, err = readWholeLetters(ctx, tx, ids, math.MaxInt32)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, letter := range letters { // what was pruned since it was listed is missing
		if err := each(letter.exported()); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

func (l *wholeLetter) exported() *ExportedLetter {
	x := &ExportedLetter{
		LedgerEntry: l.LedgerEntry, Fingerprint: l.rest.Fingerprint,
		XDeath: l.rest.XDeath, Headers: l.rest.Headers, Evidence: l.rest.Evidence, Updated: l.rest.Updated,
	}
	x.Detail = l.rest.Detail
	if utf8.Valid(l.rest.Body) {
		x.Body = new(string(l.rest.Body))
	} else {
		x.BodyBase64 = l.rest.Body
	}
	return x
}
