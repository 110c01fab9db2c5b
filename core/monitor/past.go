package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/store"
)

// PastSpan is how far back Past looks, a minute at a time.
const PastSpan = time.Hour

// pastMinutes are the ends of the minutes of the last hour, the oldest first.
func pastMinutes(now time.Time) []time.Time {
	list := make([]time.Time, PastSpan/time.Minute)
	for i := range list {
		list[i] = now.Add(-time.Duration(len(list)-1-i) * time.Minute)
	}
	return list
}

// The bounds of looking back: so many looks of so many rows for each status, and so
// many dead letters.
const (
	pastLooks   = 120
	pastPer     = 25
	pastLetters = 20_000
)

// Past is the last hour as far as it is recorded, so that who has just begun to
// look does not see it empty.
type Past struct {
	Reading
	// Minutes are the last sixty, the oldest first; empty where the database does not
	// record when executions ended, or did not answer.
	Minutes []PastMinute `json:"minutes"`
	// Estimated says that more ended than were counted one by one.
	Estimated bool `json:"estimated,omitempty"`
	// Letters says whether dead letters are recorded. Where more arrived than are
	// counted, LettersFrom is since when they are.
	Letters     bool      `json:"letters"`
	LettersFrom time.Time `json:"letters_from,omitzero"`
	// Depth is how many dead letters waited at the broker, which it records itself; the
	// oldest first, empty where it did not answer.
	Depth []PastDepth `json:"depth"`
}

// PastMinute is what happened in a minute.
type PastMinute struct {
	// At is the end of the minute.
	At time.Time `json:"at"`
	// Done counts what ended, however; Failed what failed, timed out or was abandoned;
	// Letters the dead letters that arrived; Waiting those that waited for a person at the
	// end of the minute.
	Done    float64 `json:"done"`
	Failed  float64 `json:"failed"`
	Letters float64 `json:"letters"`
	Waiting float64 `json:"waiting"`
}

// PastDepth is how many dead letters waited at a time, by the broker's clock.
type PastDepth struct {
	At    time.Time `json:"at"`
	Ready int64     `json:"ready"`
}

// Past reads the last hour. It is meant for the start of a dashboard and not for
// every poll. Without one of the sources its half is empty; without both it is an
// error.
func (m *Monitor) Past(ctx context.Context) (*Past, error) {
	p := &Past{}
	brokerErr, databaseErr := m.both(ctx, "the last hour", &p.Reading, func(b BrokerReader) (err error) {
		p.Depth, err = b.ReadDepth(ctx, DeadLetterQueue)
		return err
	}, func(ctx context.Context, tx *store.Tx, s Shape) error {
		p.Minutes, p.Estimated, p.Letters = nil, false, false // the transaction may be repeated
		return p.read(ctx, tx, s)
	})
	if brokerErr != nil && databaseErr != nil {
		return p, errors.Join(brokerErr, databaseErr)
	}
	return p, nil
}

func (p *Past) read(ctx context.Context, tx *store.Tx, s Shape) error {
	if !s.Ours {
		return nil
	}
	for _, at := range pastMinutes(p.At) {
		p.Minutes = append(p.Minutes, PastMinute{At: at})
	}
	ends, err := tx.PastEnds(ctx, pastLooks, pastPer)
	if err != nil {
		return fmt.Errorf("count what ended in the last hour: %w", err)
	}
	for _, row := range ends {
		minute := p.minute(row.MinutesAgo)
		if minute == nil {
			continue
		}
		minute.Done += math.Round(row.N)
		p.Estimated = p.Estimated || row.Estimated
		switch attune.Status(row.Status) {
		case attune.StatusFailed, attune.StatusTimeout, attune.StatusAbandoned:
			minute.Failed += math.Round(row.N)
		default:
		}
	}
	if !s.ledger {
		return nil
	}
	letters, err := tx.PastLetters(ctx, pastLetters)
	if err != nil {
		return fmt.Errorf("count the dead letters of the last hour: %w", err)
	}
	p.Letters = true
	total, oldest := int64(0), int32(0)
	for _, row := range letters {
		if minute := p.minute(row.MinutesAgo); minute != nil {
			minute.Letters = float64(row.N)
			total, oldest = total+row.N, max(oldest, row.MinutesAgo)
		}
	}
	if total >= pastLetters {
		p.LettersFrom = p.At.Add(-time.Duration(oldest) * time.Minute)
	}
	return p.readWaiting(ctx, tx)
}

// readWaiting adds up by how many the waiting dead letters changed in each minute.
func (p *Past) readWaiting(ctx context.Context, tx *store.Tx) error {
	rows, err := tx.PastWaiting(ctx, pastLetters)
	if err != nil {
		return fmt.Errorf("count the dead letters that waited in the last hour: %w", err)
	}
	waiting := int64(0)
	for _, row := range rows {
		if minute := p.minute(row.MinutesAgo); minute != nil {
			minute.Waiting = float64(row.Change)
		} else {
			waiting += row.Change
		}
	}
	for i := range p.Minutes {
		waiting += int64(p.Minutes[i].Waiting)
		p.Minutes[i].Waiting = float64(waiting)
	}
	return nil
}

// minute is the minute that ended so many minutes ago, or nil beyond the hour.
func (p *Past) minute(ago int32) *PastMinute {
	at := len(p.Minutes) - 1 - int(ago)
	if at < 0 || at >= len(p.Minutes) {
		return nil
	}
	return &p.Minutes[at]
}
