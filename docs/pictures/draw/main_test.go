package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestDrawWritesAPicture(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, draw(strings.NewReader("hello"), &out, options{Title: "a seat"}, nil))
	require.Contains(t, out.String(), ">hello</text>")
	require.Contains(t, out.String(), ">a seat</text>")
}

func TestDrawWritesAFilm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"one": "hello", "two": "bye"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var out bytes.Buffer
	require.NoError(t, draw(nil, &out, options{}, []string{"1:" + dir + "/one:key: a", "0.5:" + dir + "/two:b"}))
	require.Contains(t, out.String(), ">key: a</text>")
	require.Contains(t, out.String(), ">bye</text>")
	for argument, want := range map[string]string{
		"one": "is not SECONDS:FILE:CAPTION", "x:one:a": "does not begin with a number",
		"1:" + dir + "/none:a": "read a frame",
	} {
		require.ErrorContains(t, draw(nil, &out, options{}, []string{argument}), want)
	}
}

func TestDrawSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	require.ErrorIs(t, draw(iotest.ErrReader(broken), &bytes.Buffer{}, options{}, nil), broken)
}
