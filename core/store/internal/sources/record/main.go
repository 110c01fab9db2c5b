// Command record writes the checksum of the sources of the generated code. It runs in the store's
// folder.
package main

import (
	"log"
	"os"

	"github.com/attune-go/attune/core/store/internal/sources"
)

func main() {
	sum, err := sources.Sum(".")
	if err == nil {
		err = os.WriteFile(sources.SumFile, []byte(sum+"\n"), 0o644) //nolint:gosec // as source code
	}
	if err != nil {
		log.Fatal(err)
	}
}
