package theme

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"github.com/stretchr/testify/require"
)

func TestEveryThemeReversesTheCursor(t *testing.T) {
	t.Parallel()
	for _, name := range Names {
		for _, noColour := range []bool{false, true} {
			th, err := New(Options{Name: name, NoColor: noColour})
			require.NoError(t, err)
			require.Equal(t, "\x1b[7mx\x1b[0m", th.Paint(Cursor, "x"), name)
			if noColour {
				require.Equal(t, "x", th.Paint(Good, "x"), "%s keeps a colour", name)
			}
		}
	}
}

// Colours that a terminal lacks become the nearest ones, or none.
func TestATerminalGetsTheColoursThatItHas(t *testing.T) {
	t.Parallel()
	paints := func(opts Options) []string {
		th, err := New(opts)
		require.NoError(t, err)
		return []string{
			th.Paint(Dim, "x"), th.Paint(Warn, "x"), th.Paint(Bad, "x"), th.Paint(Cursor, "x"),
			th.Colour("red", "x"),
		}
	}
	many := []string{
		"\x1b[38;5;244mx\x1b[0m", "\x1b[38;5;130mx\x1b[0m", "\x1b[31mx\x1b[0m", "\x1b[7mx\x1b[0m",
		"\x1b[1;91mx\x1b[0m",
	}
	require.Equal(t, many, paints(Options{Name: "light"}))
	require.Equal(t, many, paints(Options{Name: "light", Profile: termenv.ANSI256}))
	sixteen := paints(Options{Name: "light", Profile: termenv.ANSI})
	require.Equal(t, many[2:], sixteen[2:])
	for _, text := range sixteen[:2] {
		require.Regexp(t, `^\x1b\[(3|9)[0-7]mx\x1b\[0m$`, text)
	}
	none := []string{"x", "x", "\x1b[1mx\x1b[0m", "\x1b[7mx\x1b[0m", "\x1b[1mx\x1b[0m"}
	require.Equal(t, none, paints(Options{Name: "light", Profile: termenv.Ascii}))
	require.Equal(t, none, paints(Options{Name: "light", NoColor: true}))
}

// On a dark background auto is the theme dark, on a light one the theme light.
func TestAutoFollowsTheBackground(t *testing.T) {
	t.Parallel()
	for name, dark := range map[string]bool{"dark": true, "light": false} {
		auto, err := New(Options{Dark: dark})
		require.NoError(t, err)
		named, err := New(Options{Name: name})
		require.NoError(t, err)
		require.Equal(t, named.codes, auto.codes)
	}
}

func TestThemesTakeTurns(t *testing.T) {
	t.Parallel()
	name := "auto"
	for range Names {
		th, err := New(Options{Name: name})
		require.NoError(t, err)
		name = th.Next()
	}
	require.Equal(t, "auto", name)
	_, err := New(Options{Name: "pink"})
	require.ErrorContains(t, err, "choose one of auto, dark, light, mono, colour-blind")
}

func TestEveryGlyphTakesOneCellAndHasAnASCIITwin(t *testing.T) {
	t.Parallel()
	th, err := New(Options{Plain: true, ASCII: true})
	require.NoError(t, err)
	g := th.Glyphs
	all := append([]string{
		g.OK, g.Busy, g.Idle, g.Done, g.Failed, g.Scheduled, g.Queued, g.Timeout, g.Paused, g.Warning,
		g.Critical, g.Cursor, g.Dot, g.Arrow, g.Space, g.AxisZero, g.AxisTick,
		g.AxisLine,
	}, g.Levels...)
	for _, glyph := range all {
		require.Equal(t, 1, ansi.StringWidth(glyph), "%q", glyph)
		twin := th.Finish(glyph)
		require.Len(t, twin, 1, "%q", glyph)
		require.Less(t, twin[0], byte(128), "%q", glyph)
	}
}

func TestAnUnknownStateIsStillShown(t *testing.T) {
	t.Parallel()
	th, err := New(Options{Plain: true})
	require.NoError(t, err)
	require.Equal(t, State{"·", Plain}, th.Of("paused_by_moon"))
}

func TestTheColourOfAnInstallationIsDroppedWithTheOthers(t *testing.T) {
	t.Parallel()
	for _, name := range Colours {
		th, err := New(Options{Name: "dark"})
		require.NoError(t, err)
		require.Contains(t, th.Colour(name, "prod"), "prod\x1b[0m")
		require.NotEqual(t, th.Paint(Strong, "prod"), th.Colour(name, "prod"), name)
		for _, opts := range []Options{{Name: "dark", NoColor: true}, {Name: "mono"}} {
			th, err = New(opts)
			require.NoError(t, err)
			require.Equal(t, "\x1b[1mprod\x1b[0m", th.Colour(name, "prod"))
		}
		th, err = New(Options{Plain: true})
		require.NoError(t, err)
		require.Equal(t, "prod", th.Colour(name, "prod"))
	}
	th, err := New(Options{})
	require.NoError(t, err)
	require.Equal(t, "\x1b[1mprod\x1b[0m", th.Colour("pink", "prod"))
}
