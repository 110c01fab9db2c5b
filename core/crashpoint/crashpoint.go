//go:build !crashpoints

package crashpoint

// Reach says that the process has come to a named moment. In this build that
// is of no consequence.
func Reach(string) {}
