package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/theme"
)

func TestAProtectedInstallationIsMarkedWithoutColours(t *testing.T) {
	t.Parallel()
	b := started(t, sample(), 80, 24, func(o *Options) { o.Protected, o.Colour = true, "red" })
	require.Contains(t, b.frame()[0], "ATTUNE prod-eu! RO")
}

func TestTheNameOfAnInstallationHasItsColour(t *testing.T) {
	t.Parallel()
	coloured := func(o *Options) { o.Colour, o.Theme = "red", theme.Options{Name: "dark"} }
	require.Contains(t, started(t, sample(), 80, 24, coloured).frame()[0], "\x1b[1;91mprod-eu\x1b[0m")
}
