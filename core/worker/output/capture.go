package output

import (
	"sync"
	"unicode/utf8"
)

// Capture keeps the first bytes written to it and forgets the rest. It may be
// written to by several goroutines and never fails, so a talkative action goes
// on undisturbed.
type Capture struct {
	mu        sync.Mutex
	kept      []byte // guarded by mu
	limit     int64
	truncated bool // guarded by mu
}

// NewCapture returns a Capture of at most limit bytes.
func NewCapture(limit int64) *Capture { return &Capture{limit: limit} }

// Write keeps what still fits and reports everything as written.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := max(c.limit-int64(len(c.kept)), 0)
	if int64(len(p)) > room {
		c.truncated = true
		c.kept = append(c.kept, p[:room]...)
		return len(p), nil
	}
	c.kept = append(c.kept, p...)
	return len(p), nil
}

// Bytes returns a copy of what was kept. A character that the limit cut in two
// is left out.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept
	if c.truncated {
		kept = kept[:len(kept)-partialRune(kept)]
	}
	return append([]byte(nil), kept...)
}

// Truncated reports whether something was forgotten.
func (c *Capture) Truncated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.truncated
}

// partialRune returns how many bytes at the end begin a character without
// ending it.
func partialRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
