// Package output turns what an action wrote or returned into JSON that the
// database can hold.
//
// PostgreSQL's jsonb refuses things that are legal elsewhere: the character
// U+0000, bytes that are no UTF-8, numbers beyond its numeric type, very deep
// nesting. An action must not be able to lose its outcome by writing one of
// them, so the first three are replaced (U+FFFD for characters, a string for a
// number that is none) and the last is an error that the result reports.
package output
