package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/testkit"
)

// planted is the text that every secret of the test contains. Passwords in URLs encode the character before it.
const planted = "planted-s3cret"

// TestNoSecretOfTheConfigurationIsWritten runs an engine, a worker and commands at the most talkative level, with right
// and wrong passwords, keys and tokens, and searches all that they write.
func TestNoSecretOfTheConfigurationIsWritten(t *testing.T) {
	t.Parallel()
	database, amqp := withPlanted(t, testkit.Database(t)), brokerLogin(t, testkit.VHost(t))
	management := withPlanted(t, testkit.ManagementURL(t)) // a wrong password
	right := "right " + planted
	tokens := filepath.Join(t.TempDir(), "tokens")
	line := fmt.Appendf(nil, "ann read,submit,operate %x\n", sha256.Sum256([]byte(right)))
	require.NoError(t, os.WriteFile(tokens, line, 0o600))
	installation := []string{
		"ATTUNE__SECURITY__ENCRYPTION_KEY=a key of thirty-two characters " + planted,
		"ATTUNE__SECURITY__JWT_SECRET=a secret of thirty-two characters " + planted,
		"ATTUNE__EXECUTOR__HTTP__TOKENS_FILE=" + tokens,
		"ATTUNE__EXECUTOR__HTTP__LISTEN=127.0.0.1:0",
	}
	environ := func(database, amqp, management string) []string {
		return append(slices.Clip(installation), "ATTUNE__DATABASE__URL="+database,
			"ATTUNE__MESSAGE_QUEUE__URL="+amqp, "ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="+management)
	}
	good := environ(database, amqp, management)

	var all output
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(all.String())
		}
	})
	serve := background(t, &all, good, "serve", "--log-level", "debug", "--log-format", "json")
	worker := background(t, &all, good, "worker", "--name", "w1", "--log-level", "debug")
	address := all.address(t)
	for _, argv := range [][]string{
		{"run", "core.echo", "-p", "message=hi", "--wait", "--timeout", "60s"},
		{"config", "explain"},
		{"config", "explain", "-o", "json"},
		{"doctor", "--no-probe", "-o", "json", "--timeout", "5s"},
		{"workers", "list"},
		{"queue", "list"},
	} {
		all.add(command(t, time.Minute, good, argv...))
	}
	require.Contains(t, all.String(), "completed in", "the installation works")
	for _, token := range []string{right, "wrong " + planted, ""} {
		all.add(fetch(t, "http://"+address+"/api/v1/queues", "Bearer "+token))
		all.add(fetch(t, "http://"+address+"/api/v1/queues?token="+url.QueryEscape(token), "Basic "+token))
	}
	for _, process := range []*exec.Cmd{worker, serve} {
		require.NoError(t, process.Process.Signal(syscall.SIGTERM))
		require.NoError(t, process.Wait())
	}

	away := func(scheme string) string { return scheme + "://attune:%40" + planted + "@127.0.0.1:1/attune" }
	for _, wrong := range [][]string{
		environ(away("postgres"), amqp, management),
		environ(database, away("amqp"), away("http")),
		environ(database, wrongPassword(t, amqp), management),
		environ("postgres://attune:"+planted+"@127.0.0.1:port/attune", amqp, management),
		environ("host=127.0.0.1 password="+planted+" port=none", amqp, management),
		environ("postgres://attune:"+planted+"%zz@127.0.0.1/attune", amqp, management),
		environ(database, "amqp://attune:"+planted+"@127.0.0.1:port/", management),
		environ(database, planted+"://attune@127.0.0.1/", "http://attune:"+planted+"%zz@127.0.0.1/"),
		append(environ(database, amqp, management), "ATTUNE__SECURITY__ENCRYPTION_KEY="+planted),
		append(environ(database, amqp, management), "ATTUNE__SECURITY__JWT_SECRET={"+planted),
	} {
		commands := [][]string{{"serve", "--log-level", "debug"}, {"run", "core.echo"}}
		if testkit.Slow() {
			commands = append(commands, []string{"worker", "--log-level", "debug"}, []string{"migrate", "check"},
				[]string{"doctor", "--no-probe", "--timeout", "1s"}, []string{"config", "explain"})
		}
		for _, argv := range commands {
			all.add(command(t, time.Second, wrong, argv...))
		}
	}
	logins := []string{basic(database), basic(management), basic(amqp), basic("//:" + right + "@")}
	for _, secret := range append(logins, planted) {
		require.NotContains(t, all.String(), secret)
	}
}

// withPlanted puts a planted password into a URL.
func withPlanted(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	parsed.User = url.UserPassword(parsed.User.Username(), "@"+planted)
	return parsed.String()
}

// wrongPassword keeps the planted text in a password that the broker refuses.
func wrongPassword(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	parsed.User = url.UserPassword(parsed.User.Username(), "@wrong "+planted)
	return parsed.String()
}

// brokerLogin creates an account of the broker with a planted password. It stays, and without its virtual host it
// may do nothing.
func brokerLogin(t *testing.T, amqp string) string {
	t.Helper()
	parsed, err := url.Parse(amqp)
	require.NoError(t, err)
	vhost := testkit.VHostName(t, amqp)
	name := "login-" + vhost
	testkit.Manage(t, http.MethodPut, "/api/users/"+name, map[string]string{"password": "@" + planted, "tags": ""}, nil)
	testkit.Manage(t, http.MethodPut, "/api/permissions/"+vhost+"/"+name,
		map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)
	parsed.User = url.UserPassword(name, "@"+planted)
	return parsed.String()
}

// basic is the user and the password of a URL as the header Authorization has them.
func basic(address string) string {
	_, rest, _ := strings.Cut(address, "//")
	login, _, _ := strings.Cut(rest, "@")
	login, _ = url.PathUnescape(login)
	return base64.StdEncoding.EncodeToString([]byte(login))
}

// output collects the output of processes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) add(text []byte) { _, _ = o.Write(text) } // a buffer accepts everything

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// address waits until the engine has logged where it listens.
func (o *output) address(t *testing.T) (address string) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		lines := bufio.NewScanner(strings.NewReader(o.String()))
		for lines.Scan() {
			if _, rest, ok := strings.Cut(lines.Text(), `"http":"127.`); ok {
				rest, _, _ = strings.Cut(rest, `"`)
				address = "127." + rest
				return true
			}
		}
		return false
	}, 30*time.Second, "the engine listens")
	return address
}

// background starts a command that the test stops.
func background(t *testing.T, all *output, environ []string, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(testkit.Program(t), argv...) //nolint:noctx // it is stopped below
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "GORACE=" + noExitPause}, environ...)
	cmd.Stdout, cmd.Stderr = all, all
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// command returns everything that a command writes; whether it fails does not matter. A command that still runs this
// long after its first output is stopped.
func command(t *testing.T, longest time.Duration, environ []string, argv ...string) []byte {
	t.Helper()
	var written output
	cmd := background(t, &written, environ, argv...)
	ended := make(chan struct{}, 1)
	go func() {
		_ = cmd.Wait() // how it ended does not matter
		ended <- struct{}{}
	}()
	testkit.Eventually(t, func() bool { return written.String() != "" || len(ended) > 0 }, time.Minute, argv)
	select {
	case <-time.After(longest):
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
	case <-ended:
	}
	require.NotEmpty(t, written.String(), argv)
	return []byte(written.String())
}

func fetch(t *testing.T, address, authorization string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(testkit.Context(t), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", authorization)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return text
}
