package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/yamldoc"
)

// Scope is what a token permits. No scope includes another.
type Scope string

// The scopes.
const (
	ScopeRead    Scope = "read"    // read everything
	ScopeOperate Scope = "operate" // act on queues, executions and workers
	ScopeSubmit  Scope = "submit"  // request executions and emit events
)

var allScopes = []Scope{ScopeRead, ScopeOperate, ScopeSubmit}

// ownToken is one line of the file.
type ownToken struct {
	name   string
	scopes []Scope
	hash   [sha256.Size]byte // of the secret
}

// actor is the name of the token in audits, empty for none.
func (t ownToken) actor() string {
	if t.name == "" {
		return ""
	}
	return "token " + t.name
}

// statEvery is the time between two checks whether the file has changed.
const statEvery = time.Second

// Tokens holds the bearer tokens of a file, and reads it again when it changes. If the file is
// unreadable or wrong, the last tokens stay in force.
type Tokens struct{ *reloaded[[]ownToken] }

// LoadTokens reads a file of tokens. Each line holds a name, the scopes
// separated by commas, and the SHA-256 of the token in hexadecimal, separated
// by spaces; empty lines and lines that begin with # are ignored.
func LoadTokens(path string, logger *slog.Logger) (*Tokens, error) {
	t := &Tokens{&reloaded[[]ownToken]{
		files: []string{path}, every: statEvery,
		read: func() ([]ownToken, error) { return readTokens(path) },
		report: func(ctx context.Context, list []ownToken, err error) {
			if err != nil {
				logger.ErrorContext(ctx, "Tokens cannot be read again, the last ones stay in force", "file", path,
					"error", err)
				return
			}
			logger.InfoContext(ctx, "Tokens read again", "file", path, "tokens", len(list))
		},
	}}
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("read the tokens (executor.http.tokens_file): %w", err)
	}
	return t, nil
}

func readTokens(path string) ([]ownToken, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []ownToken
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte(yamldoc.BOM))))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := parseToken(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		list = append(list, one)
	}
	return list, lines.Err()
}

// parseToken never quotes the hash, because it may be a token by mistake.
func parseToken(line string) (ownToken, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return ownToken{}, fmt.Errorf("a line has three fields, the name, the scopes and the SHA-256, not %d",
			len(fields))
	}
	one := ownToken{name: fields[0]}
	for word := range strings.SplitSeq(fields[1], ",") {
		if !slices.Contains(allScopes, Scope(word)) {
			return ownToken{}, fmt.Errorf("scope %q is unknown: use read, operate or submit", word)
		}
		one.scopes = append(one.scopes, Scope(word))
	}
	hash, err := hex.DecodeString(fields[2])
	if err != nil || len(hash) != sha256.Size {
		return ownToken{}, fmt.Errorf("the SHA-256 of token %s is not 64 hexadecimal digits", one.name)
	}
	copy(one.hash[:], hash)
	return one, nil
}

// find returns the token of a secret. It takes the same time for every secret.
func (t *Tokens) find(ctx context.Context, secret string) (ownToken, bool) {
	hash := sha256.Sum256([]byte(secret))
	var match ownToken
	found := false
	for _, one := range t.get(ctx) {
		if subtle.ConstantTimeCompare(one.hash[:], hash[:]) == 1 {
			match, found = one, true
		}
	}
	return match, found
}
