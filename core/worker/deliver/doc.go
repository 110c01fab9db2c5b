// Package deliver hands parameters to an action: it encodes them as JSON, dotenv or
// YAML, and writes a parameter file that only its owner can read. Parameters are
// never put on a command line, where other users of the machine could read them.
package deliver
