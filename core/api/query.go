package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/phrase"
)

const (
	// maxPage bounds a page of a list.
	maxPage = 500
	// maxID bounds ids and cursors.
	maxID = 1 << 62
)

// byID makes the handler of a read by the id in the path.
func byID[V any](read func(ctx context.Context, id int64) (V, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := idOf(r)
		if err != nil {
			return nil, err
		}
		return read(r.Context(), id)
	}
}

// large is byID for things of a kind that may be large.
func large[V any](
	s *Server, kind string, read func(ctx context.Context, id int64) (V, error),
) func(*http.Request) (any, error) {
	return byID(func(ctx context.Context, id int64) (v V, err error) {
		if err := s.awaitLarge(ctx, kind, id); err != nil {
			return v, err
		}
		return read(ctx, id)
	})
}

func idOf(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, requestError("the id in the path is not a positive number")
	}
	return id, nil
}

// onlyParameters refuses unknown query parameters, so that a mistyped filter never selects more.
func onlyParameters(r *http.Request, known []string) error {
	var unknown []string
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	text := "there is no query parameter " + strings.Join(unknown, ", ")
	if len(known) > 0 {
		text += "; there are " + strings.Join(known, ", ")
	}
	return requestError(text)
}

// query reads the parameters of a query and keeps the first error.
type query struct {
	url.Values
	err error
}

func queryOf(r *http.Request) *query { return &query{Values: r.URL.Query()} }

func (q *query) fail(text string) {
	if q.err == nil {
		q.err = requestError(text)
	}
}

// flag reads a boolean, false by default.
func (q *query) flag(name string) bool {
	text := q.Get(name)
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		q.fail(name + " must be true or false")
	}
	return yes
}

// words reads a list that is separated by commas.
func (q *query) words(name string) []string {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// age reads a duration such as 90s or 12h, 0 by default.
func (q *query) age(name string) time.Duration {
	text := q.Get(name)
	if text == "" {
		return 0
	}
	age, err := phrase.ParseSpan(text)
	if err != nil || age <= 0 {
		q.fail(name + " must be a time such as 90s, 12h or 7d")
	}
	return age
}

// number reads a positive number, 0 by default.
func (q *query) number(name string, most int64) int64 {
	text := q.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		q.fail(name + " must be a number from 1 to " + strconv.FormatInt(most, 10))
	}
	return n
}

// page reads the limit and the cursor of a list.
func (q *query) page() (limit int, cursor int64) {
	return int(q.number("limit", maxPage)), q.number("cursor", maxID)
}
