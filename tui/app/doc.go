// Package app is the dashboard's one Bubble Tea model. It owns everything that
// is not the body of a view: which view is open, the way back, the chrome, the
// input line, and above all the polls.
//
// How data flows:
//
//	Start → due(feed) → fetch under a deadline → snapshot message
//	snapshot → dropped if its generation is over → Data.Apply → screen.Changed
//	         → timer for the next poll = max(interval, 2 × took) ± 10 %
//	failure  → old data stays, marked; the next poll comes after 2, 4, 8 … 30 s
//
// A feed is polled again only after its last poll ended, so a slow source never
// piles up, and each feed has a chain of its own, so a stuck one holds up nobody
// else and no key press. Every chain carries a generation: pausing, turning to
// another view or changing a filter raises it, which cancels what is under way
// and makes its answer and its timer worthless. Feeds of hidden views are not
// polled. When the terminal loses the focus, polls come five times less often.
//
// How acting flows:
//
//	A → menu of the row → form → plan under a deadline → question → run → receipt
//
// What lies above the open view is a stack of overlays: dialogs, the help, and lines that
// are typed. The one on top takes the keys. While a dialog is open nothing below it moves:
// what is read is held until it closes. Plans and runs are commands that carry the
// operation they belong to, so an answer that comes after its dialog was left is
// dropped and logged, and an operation that was left running reports wherever the
// operator is by then. A plan is given up when it is run, so nothing runs twice.
//
// Update never does I/O; commands never touch the model.
package app
