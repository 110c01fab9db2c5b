package devstack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-go/attune/core/config"
)

// DirDefault is the folder of the stack that programs use without configured servers.
const DirDefault = config.PrivateStackDir

// publish writes the variables of the stack for programs that run in the folder above.
func (s *Stack) publish() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o755); err != nil { //nolint:gosec // the user of PostgreSQL enters it
		return fmt.Errorf("make the folder of the stack's variables: %w", err)
	}
	path := filepath.Join(s.cfg.Dir, config.PrivateStackFile)
	if err := os.WriteFile(path, []byte(strings.Join(s.variables(), "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the stack's variables: %w", err)
	}
	return nil
}

// withdraw removes what publish wrote, and the note of the last shell that used it.
func (s *Stack) withdraw() {
	for _, name := range []string{config.PrivateStackFile, "shell"} {
		_ = os.Remove(filepath.Join(s.cfg.Dir, name)) // programs then say that the servers do not answer
	}
}
