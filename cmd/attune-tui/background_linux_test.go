package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const lightAnswer = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"

// On a real terminal: one that answers is believed, one that says nothing delays no frame,
// and an answer is not taken for keys.
func TestTheTerminalIsAskedForItsBackground(t *testing.T) {
	t.Parallel()
	light := false
	for try := 0; try < 10 && !light; try++ { // others use the processors too, and the program waits for 200 ms only
		p := launchColoured(t)
		p.shows("\x1b]11;?\a")
		p.press(lightAnswer, "ATTUNE")
		p.press("?", "keys that work here")
		light = p.hasDrawn("\x1b[38;5;244m") // dim in the theme light
		p.kill()
	}
	require.True(t, light)
}

func TestATerminalThatAnswersLateKeepsItsColours(t *testing.T) {
	t.Parallel()
	p := launchColoured(t)
	p.shows("ATTUNE")
	time.Sleep(250 * time.Millisecond)
	_, err := p.hands.WriteString(lightAnswer)
	require.NoError(t, err)
	p.press("?", "keys that work here")
	require.False(t, p.hasDrawn("\x1b[38;5;244m"))
}

// launchColoured starts the program without servers on a terminal that has colours.
func launchColoured(t *testing.T) *process {
	t.Helper()
	return launch(t, os.Args[0], append([]string{asProgram + "=1", "NO_COLOR="}, noServers...))
}

func (p *process) hasDrawn(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.drew.String(), text)
}
