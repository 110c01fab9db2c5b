package export

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/phrase"
)

// Most is the largest number of rows in one file.
const Most = 100_000

// Set is the contents of a file.
type Set struct {
	// Name begins the name of the file; What describes the contents on screen.
	Name, What string
	// Values come first. Rest reads more rows from the database, nil for none. Note says which rows are missing.
	Values []any
	Rest   Rows
	Note   string
	// Wanted is the number of rows that the set should have, 0 if unknown: marked rows may be gone.
	Wanted int
}

// each calls add for every value, and returns a note on missing rows.
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

// Write writes the set to a new file: CSV if its name ends in .csv, else JSON lines.
func (s *Set) Write(ctx context.Context, path string, progress *act.Progress) (*act.Receipt, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	out := &writer{file: f, csv: strings.EqualFold(filepath.Ext(path), ".csv"), progress: progress}
	note, err := s.each(ctx, out.add)
	if err != nil {
		return unfinished(err, f.abandon(), out.rows)
	}
	if out.rows == 0 {
		f.abandon()
		return &act.Receipt{Text: "Nothing matches: no file was written.", Lines: warning(note)}, nil
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s, %d bytes, secrets masked.", phrase.Plural(out.rows, "row", "rows"), f.size)
	return &act.Receipt{Text: text, Next: path, Lines: warning(note)}, nil
}

func warning(note string) []act.TextLine {
	if note == "" {
		return nil
	}
	return []act.TextLine{{Tone: act.Warn, Text: note}}
}

// unfinished reports an export that was stopped or failed.
func unfinished(err error, part string, rows int) (*act.Receipt, error) {
	switch {
	case errors.Is(err, context.Canceled) && part != "":
		return &act.Receipt{
			Text: fmt.Sprintf("Stopped: the %d rows until then are kept.", rows), Next: part,
			Partly: true,
		}, nil
	case errors.Is(err, context.Canceled):
		return &act.Receipt{Text: "Stopped: nothing was written.", Partly: true}, nil
	case part != "":
		err = fmt.Errorf("%w; the %d rows until then are in %s", err, rows, part)
	}
	return nil, err
}

type writer struct {
	file     *file
	csv      bool
	columns  []string
	rows     int
	progress *act.Progress
}

func (w *writer) add(value any) error {
	line, err := JSON(value)
	if err == nil && w.csv {
		line, err = w.record(value, line)
	} else {
		line += "\n"
	}
	if err == nil {
		err = w.file.write(line)
	}
	if err != nil {
		return err
	}
	w.rows++
	w.progress.Set(int64(w.rows), 0)
	return nil
}

// record returns a line of CSV. The first one follows a line with the names of the columns.
func (w *writer) record(value any, line string) (string, error) {
	head := ""
	if w.columns == nil {
		w.columns = columnsOf(value)
		var err error
		if head, err = csvLine(w.columns); err != nil {
			return "", err
		}
	}
	cells, err := record(w.columns, line)
	if err != nil {
		return "", err
	}
	text, err := csvLine(cells)
	return head + text, err
}
