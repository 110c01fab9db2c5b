// Package jsonvalue reads, writes and bounds JSON.
//
// Decode and Encode change nothing: numbers keep their digits, and texts get no escapes for HTML.
//
// Every entry point (requests, rules, workflows, results, events, answers, packs) accepts values of at most
// Depth levels and Bytes; an error names the part that is too deep, too large or not storable. Messages are read up
// to MessageDepth and MessageBytes, which leave room for an envelope around the largest accepted value. So every
// accepted value can be read again.
package jsonvalue
