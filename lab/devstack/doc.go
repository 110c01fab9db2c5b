// Package devstack runs a private PostgreSQL and a private RabbitMQ as child processes, for the demo, the
// tests and the benchmarks.
//
// A stack lives in one folder and listens on free ports of 127.0.0.1 only. It uses the installed server
// binaries, but no system configuration, data or service, and no variable of the caller's environment. It
// works as any user, also as root: PostgreSQL, which refuses root, then runs as another user.
//
// Every stack has its own password, in its folder and readable for its owner only; its servers require it.
// Without durability, which is for tests, PostgreSQL trusts every user of the machine.
//
// Guarantees:
//
//   - One folder is one stack. Up locks the folder; a second Up, from any process, attaches to the running
//     servers and starts only missing ones.
//   - An attached stack (the default) ends with the process that started it, even when that process is
//     killed (on Linux; elsewhere only Down stops it). A detached one runs until Down.
//   - Up returns when both servers accept connections. Otherwise it stops the servers that it started and
//     returns an error with the end of the server's log and its path.
//   - Up clears leftovers of a kill -9: lock files, incomplete data, orphans of an earlier start. It
//     identifies processes by the stack's folder in their command line, never by number alone.
//   - If the servers cannot use the folder, Up uses one below the system's temporary folders, named by a
//     checksum of the configured folder: a blank in the path breaks Erlang's scripts, and a closed home
//     folder locks out the PostgreSQL user. Stack.Moved gives the reason.
package devstack
