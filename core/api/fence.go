package api

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// fence wraps all routes: it refuses paths and queries that are not text, and adds the common headers.
func (s *Server) fence(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		query, err := url.QueryUnescape(r.URL.RawQuery)
		if err != nil || !isText(query) || !isText(r.URL.Path) {
			s.problem(w, r, http.StatusBadRequest, "the path or the query is not text in UTF-8 without U+0000")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// thisMachine refuses requests under another host name than this machine's. It guards answers
// without a token: a page of another site can point a name at a loopback address, and its browser
// then reads the answers.
func (s *Server) thisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namesThisMachine(r.Host) {
			s.problem(w, r, http.StatusForbidden, errOtherName.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

var errOtherName = errors.New(
	"without tokens, requests are only taken under the name of this machine, such as 127.0.0.1")

// quiet allows one log line a second, so that no client can fill the log.
type quiet struct {
	mu      sync.Mutex
	last    time.Time
	skipped int
}

// next reports whether a line may be written, and how many were skipped before it.
func (q *quiet) next(now time.Time) (skipped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.last) < time.Second {
		q.skipped++
		return 0, false
	}
	skipped, q.skipped, q.last = q.skipped, 0, now
	return skipped, true
}
