// Package deliver encodes the parameters of an action as JSON, dotenv or YAML, and writes a
// parameter file that only its
// owner can read. Parameters are never on a command line, where other users of the machine could read them.
package deliver
