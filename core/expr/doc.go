// Package expr reads and evaluates the expressions of workflows and rules, and the
// templates they stand in. It is pure: names are looked up in what the caller
// passes, nothing is called that could change or wait for anything, and the same
// input gives the same value everywhere.
//
// # Language
//
// From the weakest to the strongest:
//
//	or    and    not    == != < > <= >= in    + -    * / %    - (sign)    .name [index] name(…)
//
// Literals are integers of 64 bits, floats, strings in either quote with \n \t \r \\
// and the quote escaped, true, false, null and lists in brackets. and, or and not
// give booleans and look no further than they must; anything may be asked for its
// truth, as in Python. + joins two strings or two lists; / gives an integer when
// the result is one. Values of different kinds are unequal, 3 and 3.0 are equal.
// in looks for an item of a list, a key of an object or a part of a text. An index
// below zero counts from the end. A name, field or index that is not there is an
// error. Only names can be called.
//
// # Templates
//
// {{ expression }} in a text. A text that is one template and nothing else has the
// value of the expression, with its kind; otherwise values become text, null an
// empty one and lists and objects JSON.
//
// # Bounds
//
// A source of 64 KiB, nesting of 100, 100,000 steps an evaluation, and a result of
// 4 MiB as it is built. Steps are counted for what is looked at, so that no evaluation
// takes more than 50 ms of a processor. What goes beyond is an error, never a stall.
//
// # Errors
//
// Each is an *Error with the source, the position in it and what is wrong.
package expr
