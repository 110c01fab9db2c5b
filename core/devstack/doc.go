// Package devstack runs a private PostgreSQL and a private RabbitMQ as child
// processes, for the demo, the tests and the benchmarks.
//
// A stack lives in one folder and listens on 127.0.0.1 only, on free ports. It
// uses the server binaries that the machine's packages installed, and nothing
// else of theirs: no system configuration, no system data, no system service,
// and no variable of the caller's environment reaches the servers. It works as
// root (PostgreSQL, which refuses root, then runs as another user)
// and as any other user.
//
// A stack has a password of its own, made with it and kept in its folder for its
// owner only; its servers ask for it. Only without durability, which is for tests,
// PostgreSQL trusts every user of the machine.
//
// What holds:
//
//   - One folder is one stack. Up takes a lock on the folder; a second Up, from
//     the same process or another, attaches to the servers it finds running and
//     starts only what is missing.
//   - An attached stack (the default) dies with the process that started it,
//     even when that process is killed (on Linux; elsewhere only Down stops
//     it). A detached one stays until Down.
//   - Up returns when both servers accept connections, or with an error that
//     carries the end of the server's log and its path; what it had started is
//     then stopped again.
//   - Leftovers of a kill -9 (lock files, half-made data, orphans of an earlier
//     start) are recognised and cleared. A process is ours when its command
//     line names the stack's folder, never because its number matches.
//   - A folder that the servers cannot use (a blank in the path breaks Erlang's
//     scripts, a closed home folder locks out the PostgreSQL user) is replaced
//     by one below the system's temporary folders, named by a checksum of the
//     folder asked for. Stack.Moved tells.
package devstack
