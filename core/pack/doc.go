// Package pack reads the files that people write to describe what the engine
// should do. Of the kinds of files a pack holds, this version reads policies.
//
// It is pure: content and facts about the database come in, policies and
// mistakes come out, and nothing here opens a file or a connection. Every
// mistake is found in one go and carries the place where it was made, because
// people correct files faster than they run commands.
//
//   - Parse reads one file: its form, the types of its values and the rules
//     that a policy must keep by itself.
//   - Duplicates compares the policies of several files.
//   - NeedsOf says which actions and packs must be looked up, and Check compares
//     the policies with what was found.
//
// A policy with a mistake is returned as well, as far as it could be read, so
// that the later steps find the rest of its mistakes. Nobody may apply any
// policy while there is a mistake.
package pack
