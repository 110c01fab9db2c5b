// Command draw reads a frame of a terminal from its standard input, as
// `tmux capture-pane -e -p` prints it, and writes a picture of it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/attune-go/attune/tui/picture"
)

func main() {
	var o picture.Options
	flag.StringVar(&o.Title, "title", "", "text of the bar above the frame")
	flag.BoolVar(&o.Light, "light", false, "draw on a light page")
	flag.IntVar(&o.Columns, "columns", 0, "columns of the terminal")
	flag.IntVar(&o.Rows, "rows", 0, "rows of the terminal")
	flag.Parse()
	if err := draw(os.Stdin, os.Stdout, o); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "draw: %v\n", err) // There is nowhere left to report a failure to.
		os.Exit(1)
	}
}

func draw(from io.Reader, to io.Writer, o picture.Options) error {
	frame, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("read the frame: %w", err)
	}
	if _, err := to.Write(picture.SVG(string(frame), o)); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}
