package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/attune-go/attune/core/expr"
	"github.com/attune-go/attune/core/jsonvalue"
)

// LeastKey is the minimum length of a key in bytes.
const LeastKey = 32

// Reasons why a value cannot be sealed or opened.
var (
	// ErrNoKey reports a missing key.
	ErrNoKey = errors.New("security.encryption_key is not set")
	// ErrOtherKey reports a value that was sealed with another key, or is damaged.
	ErrOtherKey = errors.New("it was encrypted with another security.encryption_key, or is damaged")
)

// Keyring seals and opens values. The zero Keyring has no key and can do neither. It is safe for concurrent use.
type Keyring struct {
	aead cipher.AEAD
	sum  [sha256.Size]byte
}

// NewKeyring returns a Keyring for the configured key, without a key if it is empty.
func NewKeyring(key string) (Keyring, error) {
	if key == "" {
		return Keyring{}, nil
	}
	if len(key) < LeastKey {
		return Keyring{}, fmt.Errorf("security.encryption_key has fewer than %d characters", LeastKey)
	}
	k := Keyring{sum: sha256.Sum256([]byte(key))}
	block, err := aes.NewCipher(k.sum[:])
	if err == nil {
		k.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		return Keyring{}, fmt.Errorf("create a cipher: %w", err)
	}
	return k, nil
}

// Ready reports whether there is a key.
func (k Keyring) Ready() bool { return k.aead != nil }

// String keeps keys out of logs.
func (k Keyring) String() string {
	if k.Ready() {
		return "keyring(key)"
	}
	return "keyring()"
}

// GoString keeps keys out of logs.
func (k Keyring) GoString() string { return k.String() }

// Sealed is a secret value in a row of execution_secret_value.
type Sealed struct {
	// Path is the JSON pointer of its marker.
	Path string
	// Kind and Ref are its origin; Kind is one of the kinds of this package.
	Kind, Ref string
	// Value is the encrypted value, a JSON string.
	Value []byte
	// KeyHash is the hash of the key that some services write. It is the encrypting key itself, so this package
	// only compares it and never writes it.
	KeyHash string
}

// Seal encrypts a value: base64(nonce ‖ ciphertext ‖ tag) of its compact JSON, as a JSON string.
func (k Keyring) Seal(value any) ([]byte, error) {
	if !k.Ready() {
		return nil, ErrNoKey
	}
	plain, err := compact(value)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	sealed := k.aead.Seal(nonce, nonce, plain, nil)
	return []byte(`"` + base64.StdEncoding.EncodeToString(sealed) + `"`), nil
}

// Hide replaces the values at the given JSON pointers, which a schema marks as secret, by markers,
// and encrypts the values. Without a key it fails if it must hide a value.
func (k Keyring) Hide(value any, paths []string) (public any, sealed []Sealed, err error) {
	public, taken := Take(value, paths)
	for _, one := range taken {
		raw, err := k.Seal(one.Value)
		if err != nil {
			return nil, nil, err
		}
		sealed = append(sealed, Sealed{Path: one.Path, Kind: FromSchema, Ref: one.Path, Value: raw})
	}
	return public, sealed, nil
}

// Open decrypts a value.
func (k Keyring) Open(sealed Sealed) (any, error) {
	if !k.Ready() {
		return nil, ErrNoKey
	}
	if sealed.KeyHash != "" {
		own := hex.EncodeToString(k.sum[:])
		if subtle.ConstantTimeCompare([]byte(own), []byte(sealed.KeyHash)) != 1 {
			return nil, ErrOtherKey
		}
	}
	var text string
	if json.Unmarshal(sealed.Value, &text) != nil {
		return nil, ErrOtherKey
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	size := k.aead.NonceSize()
	if err != nil || len(raw) < size {
		return nil, ErrOtherKey
	}
	plain, err := k.aead.Open(nil, raw[:size], raw[size:], nil)
	if err != nil {
		return nil, ErrOtherKey
	}
	value, err := expr.FromJSON(plain)
	if err != nil {
		return nil, ErrOtherKey
	}
	return value, nil
}

func compact(value any) ([]byte, error) {
	text, err := jsonvalue.Encode(value)
	if err != nil {
		return nil, errors.New("a secret value cannot be written as JSON") // the cause may repeat it
	}
	return text, nil
}
