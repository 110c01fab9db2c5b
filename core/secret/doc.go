// Package secret keeps secret values out of everything that users and messages see. It is
// pure: it encrypts, marks and follows values, and does no I/O.
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
// Templates are rendered without secrets. Trace adds the row of its secret to every marker that
// templates can see, and Defuse removes markers from foreign values. After rendering, Collect
// finds the traced markers, even in the middle of texts, replaces them by plain markers, and
// lists the parts of each. Assemble builds the value: an unchanged secret needs no key, a secret
// within a text is decrypted and encrypted again. Functions of templates see a marker, never a
// secret: a changed marker is refused when it is recognised (ErrMangled), and never contains a
// secret.
//
// # Promises
//
// The public results of Take and Collect contain no secret. No error of this package repeats a
// value, a key, or anything made from one.
//
// # On failure
//
// A missing key (ErrNoKey) and a wrong one (ErrOtherKey) have errors of their own, for errors.Is.
// No error contains a part of a value.
package secret
