package screen

import (
	"math"
	"time"

	"github.com/attune-go/attune/tui/widget"
)

// The resolution and the length of the history.
const (
	historyStep    = 15 * time.Second
	historyBuckets = 240
)

// History keeps the numbers of the last hour for trends and rates, in memory only.
type History struct {
	series map[string]*series
	swept  int64
}

// series is a ring of buckets; each holds its last sample.
type series struct {
	first, last sample
	slots       [historyBuckets]sample
}

type sample struct {
	bucket int64
	at     time.Time
	value  float64
}

func newSample(at time.Time, value float64) sample {
	return sample{bucket: at.UnixNano() / int64(historyStep), at: at, value: value}
}

// slot is the sample of a bucket; false if it has none.
func (s *series) slot(bucket int64) (sample, bool) {
	slot := s.slots[bucket%historyBuckets]
	return slot, slot.bucket == bucket && !slot.at.IsZero()
}

// NewHistory makes an empty history.
func NewHistory() *History { return &History{series: map[string]*series{}} }

// Record adds a sample, taken at the database's time.
func (h *History) Record(name string, at time.Time, value float64) {
	s, now := h.series[name], newSample(at, value)
	if s == nil {
		s = &series{first: now}
		h.series[name] = s
	}
	s.last = now
	s.slots[now.bucket%historyBuckets] = now
	if now.bucket-h.swept < historyBuckets/4 {
		return
	}
	h.swept = now.bucket
	for name, s := range h.series {
		if now.bucket-s.last.bucket > historyBuckets {
			delete(h.series, name)
		}
	}
}

// Backfill adds a sample from before the polls began, widget.Missing for a time that is known to be unknown. Samples of
// Record stay.
func (h *History) Backfill(name string, at time.Time, value float64) {
	s, old := h.series[name], newSample(at, value)
	switch {
	case s == nil || at.After(s.last.at):
		if !math.IsNaN(value) {
			h.Record(name, at, value)
		}
		return
	case old.bucket <= s.last.bucket-historyBuckets:
		return
	}
	if slot, taken := s.slot(old.bucket); taken && !math.IsNaN(slot.value) {
		return
	}
	s.slots[old.bucket%historyBuckets] = old
	if at.Before(s.first.at) && !math.IsNaN(value) {
		s.first = old
	}
}

// since is the last sample, and the newest one at least age older, or the first one. It is false until
// two samples exist.
func (h *History) since(name string, age time.Duration) (from, last sample, ok bool) {
	s := h.series[name]
	if s == nil {
		return from, last, false
	}
	want := newSample(s.last.at.Add(-age), 0)
	for b := want.bucket; b > s.last.bucket-historyBuckets; b-- {
		if slot, ok := s.slot(b); ok && !slot.at.After(want.at) && !math.IsNaN(slot.value) {
			return slot, s.last, true
		}
	}
	return s.first, s.last, s.first.at.Before(s.last.at)
}

// PerMinute is the growth of a counter within the last minute. It is false until two samples exist, and
// after the counter was reset.
func (h *History) PerMinute(name string) (float64, bool) {
	from, last, ok := h.since(name, time.Minute)
	if !ok || last.value < from.value {
		return 0, false
	}
	return (last.value - from.value) / last.at.Sub(from.at).Minutes(), true
}

// Change is the net change of a number within a time. It is false until two samples exist.
func (h *History) Change(name string, age time.Duration) (int64, bool) {
	from, last, ok := h.since(name, age)
	return int64(math.Round(last.value - from.value)), ok
}

// covers reports whether the samples of a series reach back for a time.
func (h *History) covers(name string, age time.Duration) bool {
	s := h.series[name]
	return s != nil && s.last.at.Sub(s.first.at) >= age
}

// Trend is a number over a time in n points, oldest first. Points without a sample are widget.Missing.
func (h *History) Trend(name string, span time.Duration, n int) []float64 {
	return h.points(name, span, n, func(_, last sample) float64 { return last.value })
}

// Rates is the growth of a counter per minute over a time in n points.
func (h *History) Rates(name string, span time.Duration, n int) []float64 {
	return h.points(name, span, n, func(previous, last sample) float64 {
		if previous.at.IsZero() || last.value < previous.value {
			return widget.Missing
		}
		return (last.value - previous.value) / last.at.Sub(previous.at).Minutes()
	})
}

// Gaps reports whether times within a span are known to be unknown.
func (h *History) Gaps(name string, span time.Duration) bool {
	s := h.series[name]
	if s == nil {
		return false
	}
	for b := s.last.bucket - int64(span/historyStep) + 1; b <= s.last.bucket; b++ {
		if slot, ok := s.slot(b); ok && math.IsNaN(slot.value) {
			return true
		}
	}
	return false
}

func (h *History) points(name string, span time.Duration, n int, value func(previous, last sample) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = widget.Missing
	}
	s := h.series[name]
	if s == nil || n == 0 {
		return out
	}
	buckets := max(1, int64(span/historyStep))
	var previous sample
	gaps := make([]bool, n)
	start := s.last.bucket - buckets + 1
	for b := max(start-1, s.last.bucket-historyBuckets+1, 0); b <= s.last.bucket; b++ {
		slot, ok := s.slot(b)
		if !ok {
			continue
		}
		if b >= start {
			point := (b - start) * int64(n) / buckets
			if v := value(previous, slot); !math.IsNaN(v) {
				out[point] = v
			}
			gaps[point] = gaps[point] || math.IsNaN(slot.value)
		}
		if !math.IsNaN(slot.value) {
			previous = slot
		}
	}
	if s.first.at.Equal(s.last.at) {
		return out
	}
	last := widget.Missing
	for i, v := range out { // polls may be rarer than points: the last value fills the gap
		if math.IsNaN(v) && gaps[i] {
			last = widget.Missing
		} else if math.IsNaN(v) {
			out[i] = last
		} else {
			last = v
		}
	}
	return out
}
