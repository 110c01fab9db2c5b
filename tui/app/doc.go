// Package app is the Bubble Tea model of the dashboard. It owns everything around the body of a view: the open view,
// its history, the header and footer, the input line, and the polls.
//
// Data flow:
//
//	Start → due(feed) → fetch under a deadline → snapshot message
//	snapshot → dropped if its generation is over → Data.Apply → screen.Changed
//	         → timer for the next poll = max(interval, 2 × took, at most 16 s) ± 10 %
//	failure  → old data stays, marked; the next poll comes after 2, 4, 8 … 30 s
//
// The next poll of a feed starts only after the last one ended, so that a slow source never piles up requests. Every
// feed has its own chain of polls, so that a stuck feed blocks neither other feeds nor keys. Every chain has a
// generation: pausing, leaving a view or changing a filter raises it, cancels the running read and invalidates its
// timer. Hidden views are not polled. Without the focus of the terminal, polls are five times rarer, but
// not rarer than every 25 s.
//
// Acting:
//
//	A → menu of the row → form → plan under a deadline → question → run → receipt
//
// Overlays lie above the open view: dialogs, the help, and input lines. The topmost one takes the keys. While a
// dialog is open, nothing below it changes: results are held until it closes. Plans and runs are commands with their
// operation. An answer for a closed dialog is dropped and logged; an operation whose dialog was closed reports later.
// Running a plan removes its question, so that nothing runs twice.
//
// Update never does I/O, commands never touch the model, and View changes nothing.
package app
