package triage

import (
	"os"
	"os/user"
)

// LocalActor names the account and the host that run the program, as ada@ops-1, for audits. It
// leaves out the host if the system does not tell it, and says "unknown" for an unknown account.
func LocalActor() string {
	name := "unknown"
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
