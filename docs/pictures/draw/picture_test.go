package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/theme"
)

// elements reads a picture as XML and returns its elements with their text.
func elements(t *testing.T, svg []byte) []string {
	t.Helper()
	var found []string
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err, "%s", svg)
		switch token := token.(type) {
		case xml.StartElement:
			s := token.Name.Local
			for _, a := range token.Attr {
				s += " " + a.Name.Local + "=" + a.Value
			}
			found = append(found, s)
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				found[len(found)-1] += " |" + text
			}
		}
	}
}

func TestLettersStandInTheirCells(t *testing.T) {
	t.Parallel()
	got := strings.Join(elements(t, svg("  ab c   \x1b[1;32mok\x1b[0m", options{})), "\n")
	require.Contains(t, got, "text x=30.8 y=43.5 textLength=33.6 lengthAdjust=spacingAndGlyphs fill=#d4d7dd |ab c")
	require.Contains(t, got,
		"text x=89.6 y=43.5 textLength=16.8 lengthAdjust=spacingAndGlyphs fill=#7fbf7f font-weight=bold |ok")
}

// TestAFrameOfTheDarkThemeIsRelit: it looks as if the light theme had drawn it, in every role.
func TestAFrameOfTheDarkThemeIsRelit(t *testing.T) {
	t.Parallel()
	drawn := func(name string) string {
		th, err := theme.New(theme.Options{Name: name})
		require.NoError(t, err)
		var frame strings.Builder
		for role := theme.Plain; role <= theme.Cursor; role++ {
			frame.WriteString(th.Paint(role, "role") + " ")
		}
		return frame.String()
	}
	require.NotEqual(t, drawn("dark"), drawn("light"))
	require.Equal(t, string(svg(drawn("light"), options{Light: true})),
		string(svg(drawn("dark"), options{Relight: true})))
}

func TestWideSignsTakeTwoCells(t *testing.T) {
	t.Parallel()
	got := strings.Join(elements(t, svg("界x", options{})), "\n")
	require.Contains(t, got, "x=22.4 y=43.5 text-anchor=middle fill=#d4d7dd |界")
	require.Contains(t, got, "x=30.8 y=43.5 textLength=8.4 lengthAdjust=spacingAndGlyphs fill=#d4d7dd |x")
}

func TestBarsLinesAndBrailleAreShapes(t *testing.T) {
	t.Parallel()
	got := strings.Join(elements(t, svg("█▁─┌⠁", options{})), "\n")
	require.Contains(t, got, "path d=M14 30h8.4v18h-8.4z"+"M22.4 45.8h8.4v2.2h-8.4z",
		"bars of one colour are one path, from the bottom up")
	require.Contains(t, got, "M35 39H30.8M35 39H39.2M43.4 39H47.6M43.4 39V48 fill=none")
	require.NotContains(t, got, "█")
	require.NotContains(t, got, "⠁")
}

func TestReverseSwapsInkAndGround(t *testing.T) {
	t.Parallel()
	got := strings.Join(elements(t, svg("\x1b[7m a \x1b[0mb", options{Light: true})), "\n")
	require.Contains(t, got, "path d=M14 30h25.2v18h-25.2z fill=#24292f", "the blanks of the row too")
	require.Contains(t, got, "fill=#ffffff |a")
	require.Contains(t, got, "fill=#24292f |b")
}

func TestColoursGoOnInTheNextLine(t *testing.T) {
	t.Parallel()
	got := strings.Join(elements(t, svg("\x1b[38;5;214mone\ntwo\x1b[39m\nthree \x1b[48;5;244mx", options{})), "\n")
	require.Contains(t, got, "fill=#ffaf00 |two")
	require.Contains(t, got, "fill=#d4d7dd |three")
	require.Contains(t, got, "fill=#808080")
}

func TestTheTerminalHasAtLeastTheSizeAskedFor(t *testing.T) {
	t.Parallel()
	require.Contains(t, string(svg("a\n", options{Columns: 80, Rows: 24})), `viewBox="0 0 700 476"`)
	require.Contains(t, string(svg(strings.Repeat("x", 100)+"\n\n\n", options{Columns: 80, Rows: 1})),
		`viewBox="0 0 868 98"`)
}

// Each scene is seen for its share of the time; where nothing moves the last is.
func TestAFilmShowsOneSceneAtATime(t *testing.T) {
	t.Parallel()
	moving := film([]scene{
		{Frame: "one", Caption: "a", Shown: time.Second},
		{Frame: "two", Shown: 2 * time.Second},
		{Frame: "three\n\nx", Shown: time.Second},
	},
		options{Title: "t"})
	got := strings.Join(elements(t, moving), "\n")
	require.Contains(t, got, "@keyframes s0{0%{visibility:visible}0%{visibility:visible}25%{visibility:hidden}}#s0{animation:s0 4s step-end infinite}")
	require.Contains(t, got, "@keyframes s1{0%{visibility:hidden}25%{visibility:visible}75%{visibility:hidden}}")
	require.Contains(t, got, "@keyframes s2{0%{visibility:hidden}75%{visibility:visible}100%{visibility:visible}}")
	require.Contains(t, got, "g:last-of-type{visibility:visible}")
	require.Contains(t, got, "g id=s0\ntext x=35 y=15.5 text-anchor=middle font-size=12 fill=#767c88 |t · a")
	require.Contains(t, string(moving), `viewBox="0 0 70 98"`, "as large as the largest")
}

func FuzzPicture(f *testing.F) {
	for _, seed := range []string{
		"", "\x1b[", "\x1b[38;5m", "\x1b[38;5;999mx", "<&>\x00\x1b]0;t\a", "\xff\xfe",
		"e\u0301👩‍👩‍👧", "\x1b[1;;;7mx\r\n",
	} {
		f.Add(seed, "<t>")
	}
	f.Fuzz(func(t *testing.T, frame, title string) {
		first := svg(frame, options{Title: title})
		elements(t, first)
		require.Equal(t, first, svg(frame, options{Title: title}))
	})
}
