package devstack

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake writes a program that prints the version.
func fake(t *testing.T, dir, name, version string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	syscall.ForkLock.RLock() // a child forked meanwhile would keep the file busy
	defer syscall.ForkLock.RUnlock()
	script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
}

func TestNewestPostgresIsChosen(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var dirs []string
	for _, version := range []string{"14.9", "16.2", "15.4"} {
		dir := filepath.Join(root, version)
		fake(t, dir, "postgres", version)
		fake(t, dir, "initdb", version)
		dirs = append(dirs, dir)
	}
	half := filepath.Join(root, "17.0") // a client package: no initdb
	fake(t, half, "postgres", "17.0")

	var found binaries
	require.NoError(t, found.findPostgres(t.Context(), append(dirs, half)))
	require.Equal(t, 16, found.postgresVersion)
	require.Equal(t, filepath.Join(root, "16.2", "initdb"), found.initdb)
}

func TestMissingServersNameThePackage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fake(t, root, "postgres", "14.9")
	fake(t, root, "initdb", "14.9")

	var found binaries
	var missing *MissingError
	require.ErrorAs(t, found.findPostgres(t.Context(), []string{root}), &missing)
	require.ErrorContains(t, missing, "PostgreSQL 15 or newer")
	require.ErrorContains(t, missing, "install postgresql")
	require.ErrorContains(t, missing, root)

	require.ErrorAs(t, found.findBroker([]string{root}), &missing)
	require.ErrorContains(t, missing, "install rabbitmq")
}

func TestDebiansWrapperIsNotTheBroker(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fake(t, root, "rabbitmq-script-wrapper", "3")
	onPath := filepath.Join(root, "sbin")
	require.NoError(t, os.MkdirAll(onPath, 0o755))
	require.NoError(t,
		os.Symlink(filepath.Join(root, "rabbitmq-script-wrapper"), filepath.Join(onPath, "rabbitmq-server")))
	lib := filepath.Join(root, "lib")
	fake(t, lib, "rabbitmq-server", "3")

	var found binaries
	require.NoError(t, found.findBroker([]string{onPath, lib}))
	require.Equal(t, filepath.Join(lib, "rabbitmq-server"), found.broker)
}

func TestBrokerVersions(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"3.10.0", "3.13.7", "4.0.2", "4.1"} {
		require.NoError(t, checkBrokerVersion(good), good)
	}
	for _, old := range []string{"3.9.27", "3.8", "2.99"} {
		require.ErrorIs(t, checkBrokerVersion(old), errTooOld, old)
	}
	require.Error(t, checkBrokerVersion("unknown"))
}

func TestFreePortsDifferAndAreFree(t *testing.T) {
	t.Parallel()
	free := false
	for range 10 { // other tests and programs may take one right after it was found
		ports, err := freePorts(5)
		require.NoError(t, err)
		seen := map[int]bool{}
		for _, port := range ports {
			require.False(t, seen[port])
			seen[port] = true
			require.Less(t, port, 32768, "outgoing connections use ports from there on")
		}
		free = free || allFree(ports...)
	}
	require.True(t, free)
}

func TestLongFoldersUseNoSocket(t *testing.T) {
	t.Parallel()
	long := "/tmp/" + string(make([]byte, longestSocketDir))
	stack := &Stack{place: place{dir: long}}
	require.Contains(t, stack.postgresArgs(), "unix_socket_directories=")
	stack.place.dir = "/tmp/short"
	require.Contains(t, stack.postgresArgs(), "unix_socket_directories=/tmp/short/postgres")
}
