// Package contract tests the HTTP API against its description with a client that is generated from the description.
// It is a module of its own, so that neither the client nor what it needs is part of the programs.
package contract

//go:generate sh generate.sh
