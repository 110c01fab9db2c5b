package export

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/carry"
)

// Most is how many rows there are in one file at most.
const Most = 100_000

// Set is what is to be written to a file.
type Set struct {
	// Name is the beginning of the file's name, What says it for people.
	Name, What string
	// Values are what is held already, Rest reads what is not; nil where there is
	// nothing. Note says what is missing nevertheless.
	Values []any
	Rest   Rows
	Note   string
	// Wanted is how many rows there should be, where that is known: of those that were
	// marked some may be gone.
	Wanted int
}

// each gives everything that is to be written to a function, and says what is missing
// in it.
func (s *Set) each(ctx context.Context, add func(value any) error) (note string, err error) {
	n, cut := 0, false
	give := func(value any) error {
		n++
		return add(value)
	}
	for _, value := range s.Values {
		if err := give(value); err != nil {
			return "", err
		}
	}
	if s.Rest == nil {
		return s.Note, nil
	}
	bounded, err := s.Rest(ctx, func(rows []Row, more bool) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		room := Most - n
		cut = len(rows) > room || len(rows) == room && more
		for i := range rows[:min(len(rows), room)] {
			if err := give(rows[i].Value); err != nil {
				return false, err
			}
		}
		return !cut, nil
	})
	switch {
	case err != nil:
		return "", err
	case cut:
		return fmt.Sprintf("cut at %d rows; narrow the filter for the rest", Most), nil
	case bounded:
		return "the search stopped at its bound; older matches may exist", nil
	case n < s.Wanted:
		return fmt.Sprintf("%d of the marked rows are gone", s.Wanted-n), nil
	}
	return s.Note, nil
}

// Write writes the set into a new file, in the form that its name asks for.
func (s *Set) Write(ctx context.Context, path string, progress *act.Progress) (*act.Receipt, error) {
	file, err := carry.Create(path)
	if err != nil {
		return nil, err
	}
	out := &sheet{file: file, csv: strings.EqualFold(filepath.Ext(path), ".csv"), progress: progress}
	note, err := s.each(ctx, out.add)
	if err != nil {
		return unfinished(err, file.Leave(), out.rows)
	}
	if out.rows == 0 {
		file.Leave()
		return &act.Receipt{Text: "Nothing matches: no file was written.", Lines: warning(note)}, nil
	}
	if err := file.Finish(); err != nil {
		return nil, err
	}
	rows := "rows"
	if out.rows == 1 {
		rows = "row"
	}
	text := fmt.Sprintf("%d %s, %d bytes, secrets masked.", out.rows, rows, file.Size())
	return &act.Receipt{Text: text, Next: path, Lines: warning(note)}, nil
}

// warning is a note as a line of a receipt.
func warning(note string) []act.Line {
	if note == "" {
		return nil
	}
	return []act.Line{{Tone: act.Warn, Text: note}}
}

// unfinished says what is left of an export that did not come to its end.
func unfinished(err error, part string, rows int) (*act.Receipt, error) {
	switch {
	case errors.Is(err, context.Canceled) && part != "":
		return &act.Receipt{Text: fmt.Sprintf("Stopped: the %d rows until then are kept.", rows), Next: part,
			Partly: true}, nil
	case errors.Is(err, context.Canceled):
		return &act.Receipt{Text: "Stopped: nothing was written.", Partly: true}, nil
	case part != "":
		err = fmt.Errorf("%w; the %d rows until then are in %s", err, rows, part)
	}
	return nil, err
}

// sheet writes values into a file, as lines of JSON or as CSV.
type sheet struct {
	file     *carry.File
	csv      bool
	columns  []string
	rows     int
	progress *act.Progress
}

func (s *sheet) add(value any) error {
	line, err := carry.JSON(value)
	if err == nil && s.csv {
		line, err = s.record(value, line)
	} else {
		line += "\n"
	}
	if err == nil {
		err = s.file.WriteString(line)
	}
	if err != nil {
		return err
	}
	s.rows++
	s.progress.Set(int64(s.rows), 0)
	return nil
}

// record is a value as a line of CSV, before the first of which stand the names of
// the columns.
func (s *sheet) record(value any, line string) (string, error) {
	head := ""
	if s.columns == nil {
		s.columns = carry.Columns(value)
		var err error
		if head, err = carry.Line(s.columns); err != nil {
			return "", err
		}
	}
	record, err := carry.Record(s.columns, line)
	if err != nil {
		return "", err
	}
	text, err := carry.Line(record)
	return head + text, err
}
