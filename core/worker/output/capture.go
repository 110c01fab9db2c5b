package output

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// Capture keeps the first bytes written to it and drops the rest. Write never fails, so that the action continues. It
// is safe for concurrent use.
type Capture struct {
	mu        sync.Mutex
	kept      []byte // guarded by mu
	limit     int64
	controls  int64 // remaining room for control characters; guarded by mu
	truncated bool  // guarded by mu
}

// NewCapture returns a Capture of at most limit bytes.
func NewCapture(limit int64) *Capture { return NewCaptureWithin(limit, math.MaxInt64) }

// NewCaptureWithin returns a Capture of at most limit bytes, and of at most encoded bytes of control characters as
// JSON, in which they take six times their size. No format of results has such characters.
func NewCaptureWithin(limit, encoded int64) *Capture {
	return &Capture{limit: limit, controls: encoded / escapeSize}
}

// Write keeps the bytes that fit and reports all as written.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fits := c.fitting(p[:min(int64(len(p)), max(c.limit-int64(len(c.kept)), 0))])
	c.truncated = c.truncated || fits < len(p)
	if need := len(c.kept) + fits; need > cap(c.kept) {
		c.kept = append(make([]byte, 0, max(need, min(2*cap(c.kept), int(c.limit)))), c.kept...)
	}
	c.kept = append(c.kept, p[:fits]...)
	if c.truncated {
		c.limit = 0 // keep nothing after the first dropped byte
	}
	return len(p), nil
}

// fitting counts the bytes before the first control character without room.
func (c *Capture) fitting(p []byte) int {
	for i, b := range p {
		if b >= ' ' || b == '\n' || b == '\r' || b == '\t' {
			continue
		}
		if c.controls == 0 {
			return i
		}
		c.controls--
	}
	return len(p)
}

// Len is the number of kept bytes.
func (c *Capture) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept)
}

// Bytes returns the kept bytes, which must not be changed, without a character that the limit has cut.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept
	if c.truncated {
		kept = kept[:len(kept)-partialRune(kept)]
	}
	return slices.Clip(kept)
}

// Truncated reports whether bytes were dropped.
func (c *Capture) Truncated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.truncated
}

// partialRune counts the bytes of an incomplete character at the end.
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
