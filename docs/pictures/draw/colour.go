package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// style is the style of a cell.
type style struct {
	fg, bg        int // an index of the palette, or plain
	bold, reverse bool
}

// plain is the terminal's default colour.
const plain = -1

var unstyled = style{fg: plain, bg: plain}

// palette has the sixteen named colours and the default ones.
type palette struct {
	page, bar, fg string
	named         [16]string
	// instead replaces colours by others.
	instead map[int]int
}

var dark = palette{
	page: "#14161b", bar: "#22252c", fg: "#d4d7dd",
	named: [16]string{
		"#1c1f26", "#e06c75", "#7fbf7f", "#d7a65f", "#6aa6e8", "#c58fe0", "#5fbcc4", "#c8ccd4",
		"#767c88", "#ff7b86", "#98d798", "#f2c46d", "#8fc1ff", "#dcb0f5", "#7fdbe4", "#ffffff",
	},
}

var light = palette{
	page: "#ffffff", bar: "#e9ebef", fg: "#24292f",
	named: [16]string{
		"#24292f", "#c0202b", "#1a7f37", "#8a6100", "#0550ae", "#7a3ea8", "#10707a", "#57606a",
		"#6e7781", "#d1242f", "#2da44e", "#9a6700", "#218bff", "#8250df", "#1b7c83", "#24292f",
	},
}

// relit is the light page for a frame of the dark theme, with the colours of the light theme.
var relit = palette{
	page: light.page, bar: light.bar, fg: light.fg, named: light.named,
	instead: map[int]int{8: 244, 9: 1, 11: 130, 14: 4},
}

// colour returns the colour with the number, or whenPlain for the default.
func (p *palette) colour(index int, whenPlain string) string {
	if other, ok := p.instead[index]; ok {
		index = other
	}
	switch {
	case index == plain:
		return whenPlain
	case index < 16:
		return p.named[index]
	case index < 232:
		level := func(n int) int {
			if n == 0 {
				return 0
			}
			return 55 + 40*n
		}
		n := index - 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	default:
		grey := 8 + 10*(index-232)
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
	}
}

// of returns the colours of a style; an empty background is the page.
func (p *palette) of(s style) (ink, background string) {
	ink, background = p.colour(s.fg, p.fg), p.colour(s.bg, "")
	if s.reverse {
		return cmp.Or(background, p.page), ink
	}
	return ink, background
}

// apply changes the style by the parameters of a colour sequence. It ignores unknown ones.
func (s style) apply(parameters string) style {
	fields := strings.FieldsFunc(parameters, func(r rune) bool { return r == ';' || r == ':' })
	if len(fields) == 0 {
		return unstyled
	}
	for i := 0; i < len(fields); i++ {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			continue
		}
		if (n == 38 || n == 48) && i+2 < len(fields) && fields[i+1] == "5" {
			if index, err := strconv.Atoi(fields[i+2]); err == nil && index >= 0 && index < 256 {
				if n == 48 {
					s.bg = index
				} else {
					s.fg = index
				}
			}
			i += 2
			continue
		}
		s = s.set(n)
	}
	return s
}

// set applies one single parameter.
func (s style) set(n int) style {
	switch {
	case n == 0:
		return unstyled
	case n == 1:
		s.bold = true
	case n == 22:
		s.bold = false
	case n == 7:
		s.reverse = true
	case n == 27:
		s.reverse = false
	case n == 39:
		s.fg = plain
	case n == 49:
		s.bg = plain
	case n >= 30 && n <= 37:
		s.fg = n - 30
	case n >= 40 && n <= 47:
		s.bg = n - 40
	case n >= 90 && n <= 97:
		s.fg = n - 90 + 8
	case n >= 100 && n <= 107:
		s.bg = n - 100 + 8
	}
	return s
}
