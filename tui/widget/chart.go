package widget

import (
	"math"
	"strings"
	"time"

	"github.com/attune-go/attune/tui/theme"
)

// Missing is the value of a point that was not measured.
var Missing = math.NaN()

// Spark draws the last w values as one line of bars, scaled to their own maximum. Missing points are blank.
func Spark(values []float64, w int, g *theme.Glyphs) string {
	if w <= 0 {
		return ""
	}
	values = values[max(0, len(values)-w*g.PerCell()):]
	peak := maximum(values)
	if g.Braille {
		return dots(values, peak, 1, 1, w)
	}
	var b strings.Builder
	b.Grow(w * 3)
	b.WriteString(Blank(w - len(values)))
	for _, v := range values {
		b.WriteString(level(v, peak, g.Levels))
	}
	return b.String()
}

// brailleDots are the dots of a braille cell, from the lowest of its two columns up.
var brailleDots = [2][4]rune{{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}

// dots draws one row of bars in braille, counted from below: two values a cell, four dots each. Every value above
// zero has a dot in the lowest row.
func dots(values []float64, peak float64, row, rows, w int) string {
	var b strings.Builder
	b.Grow(w * 3)
	for at := len(values) - 2*w; at < len(values); at += 2 {
		cell, known := rune(0x2800), false
		for side, ladder := range brailleDots {
			if at+side < 0 || math.IsNaN(values[at+side]) {
				continue
			}
			known = true
			high := 0
			if v := values[at+side]; v > 0 && peak > 0 {
				high = int(math.Ceil(v/peak*float64(rows*len(ladder)))) - (row-1)*len(ladder)
			} else if rows == 1 {
				high = 1 // zero
			}
			for dot := range min(max(high, 0), len(ladder)) {
				cell |= ladder[dot]
			}
		}
		if !known || cell == 0x2800 {
			cell = ' '
		}
		b.WriteRune(cell)
	}
	return b.String()
}

func level(v, peak float64, levels []string) string {
	if math.IsNaN(v) {
		return " "
	}
	if peak <= 0 || v <= 0 {
		return levels[0]
	}
	i := int(math.Ceil(v/peak*float64(len(levels)))) - 1
	return levels[min(max(i, 0), len(levels)-1)]
}

func maximum(values []float64) float64 {
	peak := 0.0
	for _, v := range values {
		if v > peak {
			peak = v
		}
	}
	return peak
}

// Chart draws values as bars h lines high, with a labelled axis on the left. The newest value is on the right; w is
// the whole width.
func Chart(values []float64, w, h int, th *theme.Theme) []string {
	return scaled(values, w, h, th, niceCeiling, func(v float64) string {
		if v >= 1000 {
			return oneDecimal(v/1000) + "k"
		}
		return strings.TrimSuffix(oneDecimal(v), ".0")
	})
}

// DurationChart is a Chart of durations in seconds.
func DurationChart(values []float64, w, h int, th *theme.Theme) []string {
	return scaled(values, w, h, th, niceSpan, func(seconds float64) string {
		return Short(time.Duration(seconds * float64(time.Second)))
	})
}

func scaled(
	values []float64, w, h int, th *theme.Theme, ceiling func(float64) float64, written func(float64) string,
) []string {
	const label = 7
	g := &th.Glyphs
	room := w - label - 1
	if room < 4 || h < 2 {
		return []string{Spark(values, w, g)}
	}
	values = values[max(0, len(values)-room*g.PerCell()):]
	peak := ceiling(maximum(values))
	rows := h - 1
	lines := make([]string, 0, h)
	for row := rows; row >= 1; row-- {
		top := peak * float64(row) / float64(rows)
		var bars strings.Builder
		if g.Braille {
			bars.WriteString(dots(values, peak, row, rows, room))
		} else {
			bars.WriteString(Blank(room - len(values)))
			for _, v := range values {
				bars.WriteString(chartCell(v/peak*float64(rows)-float64(row-1), row == 1, v, g))
			}
		}
		lines = append(lines, Right(written(top), label-1)+" "+g.AxisTick+th.Paint(theme.Trend, bars.String()))
	}
	return append(lines, Right("0", label-1)+" "+g.AxisZero+strings.Repeat(g.AxisLine, room))
}

// TimeAxis is the line below a chart of that width: the times of both ends, and as many between them as fit.
func TimeAxis(from, to time.Time, w int) string {
	const label, text = 7, 5
	room := w - label - 1
	if room < 2*text+2 || !from.Before(to) {
		return ""
	}
	steps := min(3, room/(text+6))
	var line strings.Builder
	line.WriteString(Blank(label + 1))
	for i := range steps + 1 {
		at := from.Add(to.Sub(from) * time.Duration(i) / time.Duration(steps)).UTC().Format("15:04")
		column := label + 1 + (room-text)*i/steps
		line.WriteString(Blank(column - Width(line.String())))
		line.WriteString(at)
	}
	return line.String()
}

// chartCell is the part of a bar in one row; fill is the covered share of the row.
func chartCell(fill float64, lowest bool, v float64, g *theme.Glyphs) string {
	switch {
	case math.IsNaN(v):
		return " "
	case fill >= 1:
		return g.Levels[len(g.Levels)-1]
	case fill <= 0 && lowest && v > 0:
		return g.Levels[0]
	case fill <= 0:
		return " "
	default:
		return g.Levels[min(int(fill*float64(len(g.Levels))), len(g.Levels)-1)]
	}
}

// niceCeiling is the smallest of 1, 2, 4, 5, 8 times a power of ten that is at least v. Up to twenty it is a multiple
// of four, so that the axis has whole numbers.
func niceCeiling(v float64) float64 {
	if v <= 20 {
		return max(4, 4*math.Ceil(v/4))
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 4, 5, 8, 10} {
		if v <= factor*base {
			return factor * base
		}
	}
	return 10 * base
}

// niceSpan is the smallest round duration of at least v seconds; beyond a day it is whole days.
func niceSpan(v float64) float64 {
	for _, span := range []time.Duration{
		time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		if v <= span.Seconds() {
			return span.Seconds()
		}
	}
	const day = 24 * 60 * 60
	return math.Ceil(v/day) * day
}
