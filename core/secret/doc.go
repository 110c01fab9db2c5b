// Package secret keeps secret values out of what people and messages see. It is
// pure: it encrypts, marks and follows values, and reads and writes nothing.
//
// # Where secrets are
//
// In public JSON, the config and result of an execution and the config of an
// enforcement, a marker stands in place of each secret (Marker). Its value is a row
// of execution_secret_value, found by what the JSON belongs to and the JSON pointer
// of the marker, and is encrypted (Keyring): AES-256-GCM under the SHA-256 of
// security.encryption_key, as existing services do it, so that each opens what the
// others have sealed.
//
// # Secrets in templates
//
// Templates are rendered without any secret at hand. Trace adds to every marker of
// what they can see which row it stands for, and Defuse sees to it that what others
// wrote holds none; after rendering, Collect finds these
// wherever they have gone, in the middle of texts too, puts plain markers in their
// place, and lists what each is to be made of. Assemble makes the value: a secret
// that is passed on as it is needs no key, one within a text is opened and sealed
// anew. Functions of templates see a marker, never a secret: what they make of its
// text is refused when it is recognised (ErrMangled), and holds no secret in any case.
//
// # Promises
//
// What Take and Collect return as public holds no secret. No error of this package
// repeats a value, a key, or anything made from one.
//
// # On failure
//
// Who has no key, or another one, gets an error by which errors.Is tells the two
// apart (ErrNoKey, ErrOtherKey), and never a part of a value.
package secret
