// Package sources tells whether the generated code belongs to the queries and migrations beside it.
// The sum over all of them is written when the code is generated, and computed again by a test. The
// test fails if a query or a migration was changed without generating.
package sources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// SumFile is the file of the sum in the store's folder.
const SumFile = "SOURCES.sum"

// Sum computes the checksum over everything that the generated code depends
// on. Dir is the store's folder.
func Sum(dir string) (string, error) {
	files := []string{filepath.Join(dir, "sqlc.yaml"), filepath.Join(dir, "schema_generated.sql")}
	for _, pattern := range []string{"queries/*.sql", "../../migrations/sql/*.sql"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", fmt.Errorf("list %s: %w", pattern, err)
		}
		sort.Strings(found)
		files = append(files, found...)
	}
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read a source of the generated code: %w", err)
		}
		hash.Write(fmt.Appendf(nil, "%s %d\n", filepath.Base(file), len(content)))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Recorded is the sum the generated code was made from; empty when there is none.
func Recorded(dir string) string {
	content, err := os.ReadFile(filepath.Join(dir, SumFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
