// Package expr reads and evaluates the expressions and templates of workflows and rules. It is pure: the caller passes
// the values of names, functions change nothing and never wait, and equal inputs give equal values.
//
// # Language
//
// Operators from the weakest to the strongest:
//
//	or    and    not    == != < > <= >= in    + -    * / %    - (sign)    .name [index] name(…)
//
// Literals are integers of 64 bits, floats, strings in either quote with \n \t \r \\ and the quote escaped, true,
// false, null and lists in brackets. and, or and not give booleans, and skip a right side that does not matter; every
// value has a truth value, as in Python. + joins two strings or two lists; / gives an integer if the result is one.
// Values of different kinds are unequal; 3 and 3.0 are equal. in finds an item of a list, a key of an object or a part
// of a text. An index below zero counts from the end. A missing name, field or index is an error. Only names can be
// called.
//
// # Templates
//
// {{ expression }} in a text. A text that is only one template has the value of the expression, with its kind.
// Otherwise values become text: null an empty one, lists and objects JSON.
//
// # Bounds
//
// A source has 64 KiB and a nesting of 100, an evaluation 100,000 steps and 4 MiB of built values. Steps count the
// visited data, so that no evaluation takes more than 50 ms of a processor. Exceeding a bound is an error.
//
// # Errors
//
// Each is an *Error with the source, the position and the reason.
package expr
