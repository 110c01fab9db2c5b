// Package picture draws a frame of a terminal, text with its colours, as an SVG, or
// several as an SVG that moves.
//
// A picture looks the same in every viewer: each cell has its place, runs of
// letters are stretched to the cells they fill, and what a font would draw with
// gaps or not at all (bars, lines, braille) is drawn as shapes. The same frame
// gives the same bytes. Sequences other than colours are left out.
package picture
