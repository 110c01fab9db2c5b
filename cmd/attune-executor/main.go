// Command attune-executor is the engine, its reference worker and the
// operator's command line. This package parses flags and prints; what is done
// lives in core.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
