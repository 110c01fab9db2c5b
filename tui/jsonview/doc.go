// Package jsonview shows a document: folded, searched, with secrets masked.
//
// A text is gone through once, which finds where its lines are: every member and
// element has one, every bracket that closes has one. Nothing is decoded, so a
// number keeps every digit and a megabyte costs some milliseconds once. What is
// drawn, coloured and cleaned is only what is in sight.
//
// A text that ends too early, as one that was cut off does, is shown as far as it
// goes. A text that is no JSON at all is shown as it is.
//
// Secrets are values under keys that name one, values that the platform has
// redacted, and passwords in addresses. They are neither drawn, found, nor copied
// until they are revealed, which lasts as long as the document is in sight.
package jsonview
