// Package pack reads the files of a pack: the pack itself, its runtimes, workflows, actions, triggers, rules and
// policies.
//
// It is pure: it opens no file and no connection. It reports all mistakes of all files at once, each with its place,
// because people correct files faster than they run commands.
//
//   - Read reads files together; Parse reads the policies of one file.
//   - Set.Refs and NeedsOf list the refs to read from the database.
//   - Set.Check and Check compare the items and the policies with the database.
//
// They return items with mistakes too, as far as they can be read, so that later steps find the other mistakes. A
// caller must not apply anything while there is a mistake.
package pack
