// Command draw writes a picture of terminal frames, as `tmux capture-pane -e -p` prints them.
//
//	draw [flags] < FRAME
//	draw [flags] SECONDS:FILE:CAPTION…
//
// With arguments the picture is a film: each argument has a duration, a file with a frame, and a caption.
//
// A picture is an SVG that looks the same in every viewer: each cell has its position, text is stretched to its
// cells, and bars, lines and braille, which fonts draw with gaps or not at all, are shapes. The same frame gives
// the same bytes. draw ignores sequences other than colours.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.Title, "title", "", "text of the bar above the frame")
	flag.BoolVar(&o.Light, "light", false, "draw on a light page")
	flag.BoolVar(&o.Relight, "relight", false,
		"draw a frame of the dark theme on a light page, as the light theme does")
	flag.IntVar(&o.Columns, "columns", 0, "columns of the terminal")
	flag.IntVar(&o.Rows, "rows", 0, "rows of the terminal")
	flag.Parse()
	if err := draw(os.Stdin, os.Stdout, o, flag.Args()); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "draw: %v\n", err) // a failure to write cannot be reported
		os.Exit(1)
	}
}

// draw writes a picture of the scenes or, without any, of the frame that it reads.
func draw(from io.Reader, to io.Writer, o options, scenes []string) error {
	var drawn []byte
	if len(scenes) == 0 {
		frame, err := io.ReadAll(from)
		if err != nil {
			return fmt.Errorf("read the frame: %w", err)
		}
		drawn = svg(string(frame), o)
	} else {
		list, err := readScenes(scenes)
		if err != nil {
			return err
		}
		drawn = film(list, o)
	}
	if _, err := to.Write(drawn); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// readScenes reads the scenes of the arguments.
func readScenes(arguments []string) ([]scene, error) {
	scenes := make([]scene, len(arguments))
	for i, argument := range arguments {
		parts := strings.SplitN(argument, ":", 3)
		if len(parts) < 3 {
			return nil, fmt.Errorf("%q is not SECONDS:FILE:CAPTION", argument)
		}
		seconds, err := strconv.ParseFloat(parts[0], 64)
		if err != nil {
			return nil, fmt.Errorf("%q does not begin with a number of seconds: %w", argument, err)
		}
		frame, err := os.ReadFile(parts[1])
		if err != nil {
			return nil, fmt.Errorf("read a frame: %w", err)
		}
		scenes[i] = scene{Frame: string(frame), Caption: parts[2], Shown: time.Duration(seconds * float64(time.Second))}
	}
	return scenes, nil
}
