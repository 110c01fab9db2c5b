// Package secret does what the two keys of security are for. With encryption_key it keeps secret values out of
// messages, pages and logs: it encrypts, marks and traces values. With jwt_secret it signs and verifies the bearer
// tokens of the published API. It does no I/O.
//
// # Where secrets are
//
// In public JSON (the config and result of an execution and the config of an enforcement), a
// marker replaces each secret (Marker). Its value is a row of execution_secret_value, identified
// by the owner of the JSON and the JSON pointer of the marker. It is encrypted (Keyring) with
// AES-256-GCM under the SHA-256 of security.encryption_key. Existing services use the same
// encryption, so each can decrypt the values of the others.
//
// # Secrets in templates
//
// Templates are rendered without secrets. Trace adds the row of its secret to every marker that templates can
// see, and Defuse removes markers from foreign values. After rendering, Collect finds the traced markers, also
// inside texts, replaces them by plain markers, and lists the parts of each. Assemble builds the value: an
// unchanged secret needs no key, a secret inside a text is decrypted and encrypted again. Functions of
// templates see markers and never secrets. Collect refuses a changed marker (ErrMangled).
//
// # Tokens
//
// A Signer issues and verifies JWTs signed with HS256; with any header of a token it accepts nothing else. A worker
// passes an execution token to an action as ATTUNE_API_TOKEN. It names one execution, and every service with the same
// secret accepts it; the caller must check whether the execution still runs. There is no built-in secret: without one
// it issues and accepts nothing (ErrNoSecret).
//
// # Promises
//
// The public results of Take and Collect contain no secret. No error of this package contains a part of a
// value, a token or a key. A missing key is ErrNoKey, a wrong one ErrOtherKey.
package secret
