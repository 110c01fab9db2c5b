package output

import (
	"math"
	"slices"
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
	controls  int64 // how many more control characters fit; guarded by mu
	truncated bool  // guarded by mu
}

// NewCapture returns a Capture of at most limit bytes.
func NewCapture(limit int64) *Capture { return NewCaptureWithin(limit, math.MaxInt64) }

// NewCaptureWithin returns a Capture of at most limit bytes, and of no more control
// characters than fit into that many bytes of JSON, in which they take six times their
// size. No format of results has such characters.
func NewCaptureWithin(limit, encoded int64) *Capture {
	return &Capture{limit: limit, controls: encoded / escapeSize}
}

// Write keeps what still fits and reports everything as written.
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
		c.limit = 0 // nothing follows what was forgotten
	}
	return len(p), nil
}

// fitting returns how many of the bytes fit.
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

// Len is how many bytes were kept.
func (c *Capture) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept)
}

// Bytes returns what was kept, which must not be changed. A character that the limit cut
// in two is left out.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept
	if c.truncated {
		kept = kept[:len(kept)-partialRune(kept)]
	}
	return slices.Clip(kept)
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
