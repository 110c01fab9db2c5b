package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/tui/picture"
)

func TestDrawWritesAPicture(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, draw(strings.NewReader("hello"), &out, picture.Options{Title: "a seat"}))
	require.Contains(t, out.String(), ">hello</text>")
	require.Contains(t, out.String(), ">a seat</text>")
}

func TestDrawSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	require.ErrorIs(t, draw(iotest.ErrReader(broken), &bytes.Buffer{}, picture.Options{}), broken)
}
