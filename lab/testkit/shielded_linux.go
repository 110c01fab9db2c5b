package testkit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Shielded starts a program as a user without rights, with a password in its environment, and requires that another
// process of this user cannot read the program's environment and memory once it connects to its database. It needs
// root.
func Shielded(t testing.TB, program string, environ []string, args ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("run as root to start programs as another user")
	}
	const secret = "hunter2"
	dir := t.TempDir()
	for at := dir; at != filepath.Clean(os.TempDir()) && len(at) > 1; at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o755)) //nolint:gosec // the other user enters it
	}
	binary := filepath.Join(dir, filepath.Base(program))
	copied, err := exec.CommandContext(Context(t), "cp", program, binary).CombinedOutput()
	require.NoError(t, err, "%s", copied)
	require.NoError(t, os.Chmod(binary, 0o755)) //nolint:gosec // as above

	silent, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	require.NoError(t, err)
	defer silent.Close() //nolint:errcheck // nothing was written
	without := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd := exec.CommandContext(Context(t), binary, args...)
	cmd.Env = append([]string{
		"HOME=" + dir, fmt.Sprintf("ATTUNE__DATABASE__URL=postgres://a:%s@%s/x?sslmode=disable", secret, silent.Addr()),
		"ATTUNE__MESSAGE_QUEUE__URL=amqp://127.0.0.1:1",
	}, environ...)
	cmd.SysProcAttr = without
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}()
	connection, err := silent.Accept()
	require.NoError(t, err)
	defer connection.Close() //nolint:errcheck // nothing was written

	read := exec.CommandContext(Context(t), "/bin/sh", "-c", `cat "/proc/$0/environ"; test ! -r "/proc/$0/mem"`,
		fmt.Sprint(cmd.Process.Pid))
	read.SysProcAttr = without
	out, err := read.CombinedOutput()
	require.NoError(t, err, "its memory is readable")
	require.NotContains(t, string(out), secret)
	require.Contains(t, string(out), "Permission denied")
}
