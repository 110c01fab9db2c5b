package redrive

import (
	"cmp"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// seal seals the letters of a spool with XChaCha20-Poly1305, each with a nonce of its
// own. The operation and the number of the letter are bound into it, so that nobody
// moves a letter into another spool or to another place of the same.
type seal struct {
	aead cipher.AEAD
	// name tells keys apart and gives nothing of them away.
	name string
}

// maxKeyFile bounds what is read of a file that is said to hold a key.
const maxKeyFile = 4 << 10

// loadSeal reads the key: 32 bytes, as they are or written in base64 or hex. Without
// a file nothing is sealed, and the seal is nil. A file that others can read holds no
// secret, so it is refused.
func loadSeal(path string) (*seal, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the key of the spool: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the key of the spool: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("the key of the spool, %s, is no plain file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others can read the key of the spool: chmod 600 %s", path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the key of the spool: %w", err)
	}
	key := keyOf(raw)
	if key == nil {
		return nil, fmt.Errorf("%s holds no key of %d bytes: head -c %d /dev/urandom makes one", path, chacha20poly1305.KeySize, chacha20poly1305.KeySize)
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("read the key of the spool: %w", err)
	}
	name := sha256.Sum256(append([]byte("attune spool key\x00"), key...))
	return &seal{aead, hex.EncodeToString(name[:4])}, nil
}

// keyOf is the key that a file holds; nil if it holds none.
func keyOf(raw []byte) []byte {
	if len(raw) == chacha20poly1305.KeySize {
		return raw
	}
	text := strings.TrimSpace(string(raw))
	for _, decode := range []func(string) ([]byte, error){base64.StdEncoding.DecodeString, hex.DecodeString} {
		if key, err := decode(text); err == nil && len(key) == chacha20poly1305.KeySize {
			return key
		}
	}
	return nil
}

// place is what a sealed letter is bound to.
func place(op string, n int) []byte {
	return []byte("attune spool\x00" + op + "\x00" + strconv.Itoa(n))
}

// close seals a letter: the nonce, then what it hides.
func (s *seal) close(m *wholeMessage, op string, n int) ([]byte, error) {
	plain, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return s.aead.Seal(nonce, nonce, plain, place(op, n)), nil
}

// errAltered says that a letter is not what was sealed in its place.
var errAltered = errors.New("it is not what was sealed there: somebody has altered or moved it")

// open is the letter that close has sealed in this place.
func (s *seal) open(sealed []byte, op string, n int) (*wholeMessage, error) {
	size := s.aead.NonceSize()
	if len(sealed) < size {
		return nil, errAltered
	}
	plain, err := s.aead.Open(nil, sealed[:size], sealed[size:], place(op, n))
	if err != nil {
		return nil, errAltered
	}
	m := &wholeMessage{}
	if err := json.Unmarshal(plain, m); err != nil {
		return nil, errAltered
	}
	return m, nil
}

// lock is how a spool is opened: with a key, with none, or not, because the key cannot
// be read.
type lock struct {
	seal *seal
	file string
	err  error
}

func (d *Desk) lock() lock {
	seal, err := loadSeal(d.cfg.SpoolKey)
	return lock{seal, d.cfg.SpoolKey, err}
}

// refuses says why letters that were sealed with the key of a name cannot be opened;
// empty if they can.
func (l lock) refuses(name string) string {
	switch {
	case name == "":
		return ""
	case l.err != nil:
		return l.err.Error()
	case l.seal == nil:
		return "it is sealed with the key " + name + ", and no spool_key is set"
	case l.seal.name != name:
		return fmt.Sprintf("it is sealed with the key %s, and %s holds another, %s", name, cmp.Or(l.file, "spool_key"), l.seal.name)
	default:
		return ""
	}
}
