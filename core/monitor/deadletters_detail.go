package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
)

// DeadLetter reads everything about one dead letter, with its execution and the verdict. A missing one
// is ErrNotFound.
func (m *Monitor) DeadLetter(ctx context.Context, id int64) (*LedgerDetail, error) {
	d := &LedgerDetail{}
	err := m.Read(ctx, "dead letter "+strconv.FormatInt(id, 10), &d.Reading,
		func(ctx context.Context, tx *store.Tx, s Shape) error {
			if !s.Ours {
				return ErrUnmigrated
			}
			deadLetters, err := readWholeDeadLetters(ctx, tx, []int64{id})
			if err != nil {
				return err
			}
			if len(deadLetters) == 0 {
				return ErrNotFound
			}
			whole := deadLetters[0]
			d.LedgerEntry, d.DeadLetterDocuments = whole.LedgerEntry, whole.DeadLetterDocuments
			d.Body = bodyOf(whole.body, keptInPart(d.Evidence))
			if d.LedgerEntry.Execution != nil {
				if d.ExecutionNow, err = deadletter.ReadExecution(ctx, tx, *d.LedgerEntry.Execution); err != nil {
					return err
				}
			}
			d.assess(whole.body)
			one := []LedgerEntry{d.LedgerEntry}
			err = assessLeases(ctx, tx, s, one)
			d.LedgerEntry = one[0]
			return err
		})
	if err == nil {
		one := []LedgerEntry{d.LedgerEntry}
		m.assessRoutes(ctx, one)
		d.LedgerEntry = one[0]
	}
	return d, err
}

// DeadLettersByID reads the dead letters with these ids as lists show them, the newest first.
func (m *Monitor) DeadLettersByID(ctx context.Context, ids []int64) (list []LedgerEntry, err error) {
	err = m.Read(ctx, "dead letters", &Reading{}, func(ctx context.Context, tx *store.Tx, s Shape) (err error) {
		if !s.Ours {
			return ErrUnmigrated
		}
		if list, err = readDeadLetters(ctx, tx, ids); err != nil {
			return err
		}
		return assessLeases(ctx, tx, s, list)
	})
	m.assessRoutes(ctx, list)
	return list, err
}

// SortByExecution sorts dead letters in the order in which their executions were requested, so that queues stay FIFO if
// they are requeued in this order. Dead letters without an execution come last.
func SortByExecution(list []LedgerEntry) {
	execution := func(e *LedgerEntry) int64 {
		if e.Execution == nil {
			return math.MaxInt64
		}
		return *e.Execution
	}
	slices.SortFunc(list, func(a, b LedgerEntry) int {
		return cmp.Or(cmp.Compare(execution(&a), execution(&b)), cmp.Compare(a.ID, b.ID))
	})
}

// assess sets the verdict.
func (d *LedgerDetail) assess(body []byte) {
	facts := deadletter.Facts{Entry: &d.LedgerEntry, Execution: d.ExecutionNow, Cut: d.Body.Cut}
	if !d.Body.Cut { // a cut body cannot be decoded
		if envelope, err := message.DecodeRaw(body); err != nil {
			facts.Unreadable = err.Error()
		} else if _, known := message.RouteOf(envelope.MessageType); !known {
			facts.Unreadable = fmt.Sprintf("the message type %.100q is unknown", envelope.MessageType)
		}
	}
	d.Verdict = deadletter.Evaluate(facts)
}

// keptInPart reports whether the ledger holds only a part of the body.
func keptInPart(evidence json.RawMessage) bool {
	var says struct {
		Body struct {
			Cut bool `json:"cut"`
		} `json:"body"`
	}
	return json.Unmarshal(evidence, &says) == nil && says.Body.Cut
}

// bodyOf is the readable form of a body.
func bodyOf(body []byte, cut bool) DeadLetterBody {
	b := DeadLetterBody{Size: int64(len(body)), Cut: cut}
	whole := body
	if b.Cut {
		whole = completeRunes(body)
	}
	switch {
	case len(body) == 0:
		b.Format = "empty"
	case json.Valid(body) && utf8.Valid(body):
		b.Format, b.JSON = "json", body
	case utf8.Valid(whole):
		b.Format, b.Text = "text", string(whole)
	default:
		b.Format, b.Base64 = "binary", body
	}
	return b
}

// completeRunes drops a character that the cut divided.
func completeRunes(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}

// readWholeDeadLetters reads dead letters with their documents and bodies.
func readWholeDeadLetters(ctx context.Context, tx *store.Tx, ids []int64) ([]ExportedDeadLetter, error) {
	list, err := readDeadLetters(ctx, tx, ids)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	type row struct {
		ID int64
		DeadLetterDocuments
		Detail string
		Body   []byte
	}
	rests, err := store.Rows[row](ctx, tx, store.ViewDeadLetterRest, ids)
	if err != nil {
		return nil, fmt.Errorf("read the documents of %d dead letters: %w", len(ids), err)
	}
	whole := make([]ExportedDeadLetter, len(list))
	for i, rest := range rests { // both are ordered by id, in one snapshot
		x := ExportedDeadLetter{LedgerEntry: list[i], DeadLetterDocuments: rest.DeadLetterDocuments, body: rest.Body}
		x.Detail = rest.Detail
		if utf8.Valid(rest.Body) {
			x.Body = new(string(rest.Body))
		} else {
			x.BodyBase64 = rest.Body
		}
		whole[i] = x
	}
	return whole, nil
}

// ExportedDeadLetter is everything that the ledger has of one dead letter.
type ExportedDeadLetter struct {
	LedgerEntry
	DeadLetterDocuments
	// Body is set for UTF-8, BodyBase64 for other bodies.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitempty"`

	body []byte
}

// exportPage and exportBytes bound how many dead letters and how many bytes of bodies are read at
// once; a longer body is read alone.
const (
	exportPage  = 200
	exportBytes = 8 << 20
)

// ExportDeadLetters calls each for every matching dead letter, the newest first, at most limit times if
// limit is above 0. It reads pages, so that its memory does not grow with the ledger. Later arrivals
// are not included.
func (m *Monitor) ExportDeadLetters(ctx context.Context, filter DeadLetterFilter, limit int,
	each func(*ExportedDeadLetter) error,
) (int, error) {
	filter.Limit = exportPage
	done := 0
	for cursor := int64(0); ; {
		page, err := m.ledgerList(ctx, filter, cursor)
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

// exportSome exports as many of the first dead letters as fit in memory.
func (m *Monitor) exportSome(ctx context.Context, list []LedgerEntry, each func(*ExportedDeadLetter) error) (int,
	error,
) {
	ids, bytes := []int64{list[0].ID}, list[0].Size
	for _, next := range list[1:] {
		if bytes += next.Size; bytes > exportBytes {
			break
		}
		ids = append(ids, next.ID)
	}
	var deadLetters []ExportedDeadLetter
	err := m.Read(ctx, "dead letters", &Reading{}, func(ctx context.Context, tx *store.Tx, _ Shape) (err error) {
		deadLetters, err = readWholeDeadLetters(ctx, tx, ids)
		return err
	})
	if err != nil {
		return 0, err
	}
	for i := range deadLetters { // rows pruned since the listing are missing
		if err := each(&deadLetters[i]); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}
