package screen

import (
	"math"
	"time"

	"github.com/attune-go/attune/tui/widget"
)

// The resolution and the reach of what is remembered between polls.
const (
	historyStep    = 15 * time.Second
	historyBuckets = 240
)

// History keeps the numbers of the last hour for trends and rates. It lives in
// the dashboard only: nothing of it is read from or written to the database.
type History struct {
	series map[string]*series
	swept  int64
}

// series is a ring of buckets; the value of a bucket is the last sample in it.
type series struct {
	first, last sample
	slots       [historyBuckets]sample
}

// sample is a value with the bucket and the time it was taken in.
type sample struct {
	bucket int64
	at     time.Time
	value  float64
}

// NewHistory makes an empty history.
func NewHistory() *History { return &History{series: map[string]*series{}} }

// Record adds a sample of the named series, taken at the database's time.
func (h *History) Record(name string, at time.Time, value float64) {
	bucket := at.UnixNano() / int64(historyStep)
	s, ok := h.series[name]
	if !ok {
		s = &series{}
		h.series[name] = s
	}
	now := sample{bucket, at, value}
	if s.first.at.IsZero() {
		s.first = now
	}
	s.last = now
	s.slots[bucket%historyBuckets] = now
	h.sweep(bucket)
}

// Backfill adds a sample from before the polls began. What was recorded live stays.
func (h *History) Backfill(name string, at time.Time, value float64) {
	s, ok := h.series[name]
	if !ok {
		h.Record(name, at, value)
		return
	}
	bucket := at.UnixNano() / int64(historyStep)
	if bucket <= s.last.bucket-historyBuckets {
		return
	}
	if at.After(s.last.at) {
		h.Record(name, at, value)
		return
	}
	slot := &s.slots[bucket%historyBuckets]
	if slot.bucket == bucket && !slot.at.IsZero() {
		return
	}
	*slot = sample{bucket, at, value}
	if at.Before(s.first.at) {
		s.first = *slot
	}
}

// sweep forgets series that were not recorded for as long as the ring reaches.
func (h *History) sweep(bucket int64) {
	if bucket-h.swept < historyBuckets/4 {
		return
	}
	h.swept = bucket
	for name, s := range h.series {
		if bucket-s.last.bucket > historyBuckets {
			delete(h.series, name)
		}
	}
}

// before returns the newest sample that is at least age older than the last.
// When the series is younger than that, it returns its first sample.
func (s *series) before(age time.Duration) (sample, bool) {
	want := s.last.at.Add(-age)
	for b := want.UnixNano() / int64(historyStep); b > s.last.bucket-historyBuckets; b-- {
		if slot := s.slots[b%historyBuckets]; slot.bucket == b && !slot.at.IsZero() && !slot.at.After(want) {
			return slot, true
		}
	}
	return s.first, s.first.at.Before(s.last.at)
}

// PerMinute is the growth of a counter per minute, over the last minute. It is
// false until two samples exist, and after the counter was reset.
func (h *History) PerMinute(name string) (float64, bool) {
	s, ok := h.series[name]
	if !ok {
		return 0, false
	}
	from, ok := s.before(time.Minute)
	if !ok || s.last.value < from.value {
		return 0, false
	}
	return (s.last.value - from.value) / s.last.at.Sub(from.at).Minutes(), true
}

// covers reports whether the samples of a series reach back for the given time.
func (h *History) covers(name string, age time.Duration) bool {
	s, ok := h.series[name]
	return ok && s.last.at.Sub(s.first.at) >= age
}

// Change is the net change of a number over the given time. It is false until
// two samples exist.
func (h *History) Change(name string, age time.Duration) (int64, bool) {
	s, ok := h.series[name]
	if !ok {
		return 0, false
	}
	from, ok := s.before(age)
	if !ok {
		return 0, false
	}
	return int64(math.Round(s.last.value - from.value)), true
}

// Trend is the course of a number over the given time in n points, oldest
// first. Points without a sample are widget.Missing.
func (h *History) Trend(name string, span time.Duration, n int) []float64 {
	return h.points(name, span, n, func(_, last sample) float64 { return last.value })
}

// Rates is the growth of a counter per minute over the given time in n points.
func (h *History) Rates(name string, span time.Duration, n int) []float64 {
	return h.points(name, span, n, func(previous, last sample) float64 {
		if previous.at.IsZero() || last.value < previous.value {
			return widget.Missing
		}
		return (last.value - previous.value) / last.at.Sub(previous.at).Minutes()
	})
}

func (h *History) points(name string, span time.Duration, n int, value func(previous, last sample) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = widget.Missing
	}
	s, ok := h.series[name]
	if !ok || n == 0 {
		return out
	}
	buckets := max(1, int64(span/historyStep))
	var previous sample
	start := s.last.bucket - buckets + 1
	for b := max(start-1, s.last.bucket-historyBuckets+1); b <= s.last.bucket; b++ {
		if b < 0 {
			continue
		}
		slot := s.slots[b%historyBuckets]
		if slot.bucket != b || slot.at.IsZero() {
			continue
		}
		if b >= start {
			if v := value(previous, slot); !math.IsNaN(v) {
				out[(b-start)*int64(n)/buckets] = v
			}
		}
		previous = slot
	}
	if !s.first.at.Equal(s.last.at) {
		fillGaps(out)
	}
	return out
}

// fillGaps carries the last value over points that got no sample of their own
// because polls are rarer than points.
func fillGaps(points []float64) {
	last := widget.Missing
	for i, v := range points {
		if math.IsNaN(v) {
			points[i] = last
			continue
		}
		last = v
	}
}
