// Package schema checks parameters, results and answers against the schemas that
// actions, triggers and inquiries declare. It is pure.
//
// # Two forms
//
// The flat form is an object of parameters, each with type, default, required,
// secret, enum, minimum and the like:
//
//	{"url": {"type": "string", "required": true}, "token": {"type": "string", "secret": true}}
//
// The other form is JSON Schema: an object with type, properties and required, or
// any other schema, as inquiries use it for a single value. Which one it is shows in
// its keys. Of JSON Schema this is understood: type, enum, const, the bounds of
// numbers, strings, lists and objects, pattern, properties, required,
// additionalProperties, items, anyOf, oneOf, allOf and not. What is not understood
// allows everything, and Ignored lists it.
//
// # Rules
//
// A parameter that is null counts as missing, for then its default is taken, and a
// default satisfies required. Parameters that no schema knows are allowed, unless
// additionalProperties says otherwise. 3.0 is an integer. A marker of a secret fits
// wherever a value is expected: what it stands for was checked when it was sealed.
//
// # Bounds
//
// A schema of 256 KiB and nesting of 64; a check of 100,000 steps that lists no more
// than 20 mistakes. A step is a value compared with a schema, or 5,000 bytes of a text
// times the parts of its pattern.
//
// # On failure
//
// Parse fails only for what is no JSON or too large. Validate lists all mistakes, each
// with the path of the value and in words; it never repeats a value, which may be
// secret.
package schema
