// Package output converts the output or the return value of an action to JSON that the database accepts.
//
// PostgreSQL's jsonb refuses the character U+0000, bytes that are no UTF-8, numbers beyond its numeric type and very
// deep nesting. An action must not lose its result by writing one of them. So the first three are replaced (U+FFFD for
// characters, a string for a number), and the last is an error in the result.
package output
