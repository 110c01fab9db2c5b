package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// strokes are the directions of the lines of a box character from the middle of its cell.
var strokes = map[rune]string{
	'─': "lr", '│': "ud", '┌': "rd", '┐': "ld", '└': "ru", '┘': "lu",
	'├': "udr", '┤': "udl", '┬': "lrd", '┴': "lru", '┼': "lrud",
	'╭': "rd", '╮': "ld", '╰': "ru", '╯': "lu", '╌': "lr",
}

// shape returns the path of a character that is drawn as a shape, empty for any other. stroked reports a line in
// place of an area.
func shape(text string, x, y float64) (path string, stroked bool) {
	r, size := utf8.DecodeRuneInString(text)
	if size != len(text) {
		return "", false
	}
	switch {
	case r >= '▁' && r <= '█':
		h := cellHeight * float64(r-'▁'+1) / 8
		return area(x, y+cellHeight-h, cellWidth, h), false
	case r == '▌':
		return area(x, y, cellWidth/2, cellHeight), false
	case r > 0x2800 && r <= 0x28ff:
		return dots(int(r-0x2800), x, y), false
	}
	var lines strings.Builder
	for _, to := range strokes[r] {
		fmt.Fprintf(&lines, "M%s %s", number(x+cellWidth/2), number(y+cellHeight/2))
		switch to {
		case 'l':
			lines.WriteString("H" + number(x))
		case 'r':
			lines.WriteString("H" + number(x+cellWidth))
		case 'u':
			lines.WriteString("V" + number(y))
		case 'd':
			lines.WriteString("V" + number(y+cellHeight))
		}
	}
	return lines.String(), true
}

// area returns the path of a filled rectangle.
func area(x, y, w, h float64) string {
	return fmt.Sprintf("M%s %sh%sv%sh-%sz", number(x), number(y), number(w), number(h), number(w))
}

// dots returns the path of a braille character.
func dots(mask int, x, y float64) string {
	const side = 2.4
	places := [8][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}
	var path strings.Builder
	for bit, place := range places {
		if mask&(1<<bit) == 0 {
			continue
		}
		cx := x + cellWidth*(0.25+0.5*float64(place[0]))
		cy := y + cellHeight*(0.125+0.25*float64(place[1]))
		path.WriteString(area(cx-side/2, cy-side/2, side, side))
	}
	return path.String()
}
