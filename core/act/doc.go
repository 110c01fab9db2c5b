// Package act tells each act of an operator once: what may be done to a row, what an operator asks for, what that would
// change, what it has changed, and why it could not. The dashboard, the command line and HTTP only show it: a frame,
// lines with an exit code, JSON with a status.
//
// # An act
//
// Each act has a Kind, its name in operator_audit, and one Act that declares it: its places in menus, its fields, its
// command, its route and its planner. The doors make menus, commands and routes from it. The declaration, the planner
// and the words of the receipt are in one file for each act, or for an act and its opposite. A new act is one such
// file. Transactions of many rows and steps are in package triage; triage.Change runs one that is simpler.
//
// # From a request to a receipt
//
//	Menu      the acts on a row, with reasons why others do not apply; only the dashboard has menus
//	Request   the kind, the rows, and the values of the fields as texts, which each door reads in its way
//	Plan      sentences, the word that confirms it, the published plan, and the run. Planning changes nothing.
//	Run       the one loop of triage, with its lock, pace, stop and counts; it checks everything again under locks
//	Receipt   a sentence and lines, the audits, what to do next, how to undo it, and the published receipt
//	Problem   why an act is not done: its kind, a sentence, and what to do instead
//
// # Rules for all doors
//
// What the operator names one by one is not asked about: the ids are the confirmation. What a filter chooses, and what
// cannot be undone, is confirmed: with a key or a yes, and above 50 rows with a word. A client of HTTP confirms such an
// act with the text that its plan says, whatever the number of rows.
//
// An act that would change nothing is offered by no menu. A command or a client may ask for it: it does no harm, is
// audited, and its receipt says that nothing changed. An act that is possible but of no use is refused unless the
// operator insists: with the word anyway, --yes, or "anyway": true.
//
// Executions are cancelled in one way: all waiting ones are withdrawn before a worker is asked to stop one, so that no
// freed slot starts another one of them. Retries and requeues follow the order of the first requests.
package act
