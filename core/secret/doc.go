// Package secret keeps secret values out of messages, pages and logs. It is pure: it encrypts, marks and
// traces values, and does no I/O.
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
// # Promises
//
// The public results of Take and Collect contain no secret. No error of this package contains a part of a
// value or a key. A missing key is ErrNoKey, a wrong one ErrOtherKey.
package secret
