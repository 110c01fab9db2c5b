package api

import (
	"crypto/sha256"
	"io"
	"net/http"

	"github.com/attune-go/attune/core/submit"
)

// keyHeader names a request, so that a client can repeat it.
const keyHeader = "Idempotency-Key"

// maxKey bounds a key.
const maxKey = 255

// keyOf checks the Idempotency-Key of a request. read returns it after the body was read, nil without one. Clients
// share no keys.
func keyOf(r *http.Request, client string) (read func() *submit.Key, err error) {
	values := r.Header.Values(keyHeader)
	if len(values) == 0 {
		return func() *submit.Key { return nil }, nil
	}
	text := values[0]
	fits := len(values) == 1 && text != "" && len(text) <= maxKey
	for i := range len(text) {
		fits = fits && text[i] >= 0x20 && text[i] <= 0x7e
	}
	if !fits {
		return nil, requestError("Idempotency-Key must be one text of 1 to 255 ASCII characters")
	}
	digest := sha256.New()
	digest.Write([]byte(r.URL.Path + "\n"))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, digest), r.Body}
	return func() *submit.Key { return &submit.Key{Client: client, Text: text, Digest: digest.Sum(nil)} }, nil
}
