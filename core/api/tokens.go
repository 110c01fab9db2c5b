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
	"sync"
	"time"
)

// Scope is what a token permits. No scope includes another.
type Scope string

// The scopes.
const (
	ScopeRead    Scope = "read"    // look
	ScopeOperate Scope = "operate" // act on queues, executions and workers
	ScopeSubmit  Scope = "submit"  // request executions and emit events
)

var allScopes = []Scope{ScopeRead, ScopeOperate, ScopeSubmit}

// ownToken is one line of the file: who, what for, and the hash of the secret.
type ownToken struct {
	name   string
	scopes []Scope
	hash   [sha256.Size]byte
}

// lookEvery is how often the file is asked whether it has changed.
const lookEvery = time.Second

// Tokens holds the bearer tokens of a file, which is read again when it
// changes. A file that has become unreadable or wrong leaves the tokens in
// force that were read last, and says so in the log.
type Tokens struct {
	path   string
	logger *slog.Logger

	mu sync.Mutex
	// list is what was read last, of the file as stamp describes it; looked is
	// when the file was asked last. Guarded by mu.
	list   []ownToken
	stamp  string
	looked time.Time
}

// LoadTokens reads a file of tokens. Each line holds a name, the scopes
// separated by commas, and the SHA-256 of the token in hexadecimal, separated
// by spaces; empty lines and lines that begin with # are left out.
func LoadTokens(path string, logger *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, logger: logger, looked: time.Now()}
	stamp, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("read the tokens (executor.http.tokens_file): %w", err)
	}
	if t.list, err = readTokens(path); err != nil {
		return nil, fmt.Errorf("read the tokens (executor.http.tokens_file): %w", err)
	}
	t.stamp = stamp
	return t, nil
}

// stampOf tells one state of the file from another.
func stampOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), info.Mode()), nil
}

func readTokens(path string) ([]ownToken, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []ownToken
	lines := bufio.NewScanner(bytes.NewReader(text))
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

// find returns the token that the secret belongs to. It takes the same time
// whichever it is, and if there is none.
func (t *Tokens) find(ctx context.Context, secret string) (ownToken, bool) {
	hash := sha256.Sum256([]byte(secret))
	var match ownToken
	found := false
	for _, one := range t.current(ctx) {
		if subtle.ConstantTimeCompare(one.hash[:], hash[:]) == 1 {
			match, found = one, true
		}
	}
	return match, found
}

// current reads the file again if it has changed.
func (t *Tokens) current(ctx context.Context) []ownToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.looked) < lookEvery {
		return t.list
	}
	t.looked = time.Now()
	stamp, err := stampOf(t.path)
	if err == nil && stamp == t.stamp {
		return t.list
	}
	var list []ownToken
	if err == nil {
		list, err = readTokens(t.path)
	}
	if err != nil {
		if t.stamp != "" { // once, not with every request
			t.logger.ErrorContext(ctx, "The tokens could not be read again, those read last stay in force", "file",
				t.path, "error", err)
		}
		t.stamp = ""
		return t.list
	}
	t.list, t.stamp = list, stamp
	t.logger.InfoContext(ctx, "Tokens were read again", "file", t.path, "tokens", len(list))
	return t.list
}
