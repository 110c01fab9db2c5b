// Package carry takes things out of the dashboard: through the terminal into the
// clipboard, or into a file.
//
// What leaves is masked as on the screen and inert: a control character or one that
// turns the direction of text is written as an escape where the form has one, and
// left out where it has none. Files are made with mode 0600 and are never written over
// what is there. Until one is whole its name belongs to an empty file.
package carry
