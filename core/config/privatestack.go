package config

import (
	"os"
	"path/filepath"
	"strings"
)

// PrivateStackDir is the folder, below the working folder, of private servers for development (attune-lab stack).
const PrivateStackDir = ".attune/stack"

// PrivateStackFile has the variables that name running private servers, one a line.
const PrivateStackFile = "env"

// PrivateStack returns the variables that name the private servers of the working folder, nil if none run.
func PrivateStack() []string {
	text, err := os.ReadFile(filepath.Join(PrivateStackDir, PrivateStackFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
