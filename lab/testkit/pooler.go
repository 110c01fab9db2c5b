package testkit

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// PgBouncer starts one in front of a database and returns the URL through it. It skips the test if PgBouncer is
// not installed. The pooler refuses startup parameters except the ignored ones.
func PgBouncer(t testing.TB, databaseURL, mode string, ignored ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("install pgbouncer to run this test")
	}
	at, err := url.Parse(databaseURL)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "attune-pooler-*") // another user cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	password, _ := at.User.Password()
	port := FreePort(t)
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s password=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"+
		"listen_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\nignore_startup_parameters = %s\n",
		at.Hostname(), at.Port(), at.User.Username(), password, port, mode, strings.Join(ignored, ","))
	file := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	cmd := exec.Command(program, file)
	if os.Getuid() == 0 { // which PgBouncer refuses
		const unprivileged = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	StartServer(t, cmd)
	Eventually(t, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = conn.Close() // it was only a probe
		}
		return err == nil
	}, 10*time.Second, "PgBouncer listens")
	return atPort(t, databaseURL, port)
}
