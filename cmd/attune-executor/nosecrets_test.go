package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/attune-go/attune/lab/testkit"
)

// planted is the text that every secret of the test contains. Passwords in URLs encode the character before it.
const planted = "planted-s3cret"

// TestNoSecretOfTheConfigurationIsWritten runs an engine, a worker and commands at the most talkative level, with right
// and wrong passwords, keys and tokens, and searches all that they write.
func TestNoSecretOfTheConfigurationIsWritten(t *testing.T) {
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

// TestNoPartOfAPasswordIsWritten runs every program that connects with passwords that parsers of addresses read
// differently, raw and encoded, at servers that cannot be found, refuse the connection or refuse the password, and in
// malformed addresses. Each password meets one program and one address, chosen anew in each run; if Slow, twenty.
func TestNoPartOfAPasswordIsWritten(t *testing.T) {
	t.Parallel()
	engine := testkit.Program(t)
	dashboard := filepath.Join(filepath.Dir(engine), "attune-tui")
	programs := [][]string{
		{engine, "serve", "--log-level", "debug"},
		{engine, "worker", "--log-level", "debug", "--log-format", "text"},
		{engine, "doctor", "--no-probe", "--timeout", "2s"},
		{engine, "doctor", "--no-probe", "--timeout", "2s", "-o", "json"},
		{engine, "health", "--timeout", "1s"},
		{engine, "migrate", "check"},
		{engine, "config", "explain", "-o", "json"},
		{engine, "queue", "list"},
		{engine, "run", "core.echo"},
		{dashboard, "--snapshot", "overview", "--width", "400"},
		{dashboard, "--plain"},
	}
	amqp, management := testkit.VHost(t), testkit.ManagementURL(t)
	good := map[string]string{
		"DATABASE__URL": testkit.Database(t), "MESSAGE_QUEUE__URL": amqp, "MESSAGE_QUEUE__MANAGEMENT_URL": management,
	}
	type form struct{ key, address string }
	var forms []form
	for _, of := range []struct{ key, scheme, server string }{
		{"DATABASE__URL", "postgresql", refusingDatabase(t)},
		{"MESSAGE_QUEUE__URL", "amqp", hostOf(t, amqp)},
		{"MESSAGE_QUEUE__MANAGEMENT_URL", "http", hostOf(t, management)},
	} {
		for _, rest := range []string{
			"://anna:%s@" + of.server + "/", "://anna:%s@127.0.0.1:1/", "://anna:%s@no..host:1/", "://anna:%s@127.0.0.1:port/",
			"://anna:%s@127.0.0.1:1,no..host/", "://anna:%s@127.0.0.1:1/%%zz", ":/anna:%s@127.0.0.1:1", "://127.0.0.1:1/?password=%s",
		} {
			forms = append(forms, form{of.key, of.scheme + rest})
		}
	}
	for _, rest := range []string{"port=1", "port=none", "host=no..host", "sslmode=none"} {
		forms = append(forms, form{"DATABASE__URL", "host=127.0.0.1 user=anna password=%s " + rest},
			form{"DATABASE__URL", "host=127.0.0.1 user=anna pasword=%s " + rest})
	}

	dice, courses := testkit.Dice(t), 1
	if testkit.Slow() {
		courses = 20
	}
	group, ctx := errgroup.WithContext(testkit.Context(t))
	group.SetLimit(4)
	for i, password := range slices.Repeat(oddPasswords(), courses) {
		program, at, encoded := programs[dice.IntN(len(programs))], forms[dice.IntN(len(forms))], dice.IntN(2) == 0
		written := password
		switch {
		case encoded && strings.Contains(at.address, "://"):
			written = strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
		case encoded:
			written = "'" + strings.NewReplacer("'", `\'`, `\`, `\\`).Replace(password) + "'"
		}
		environ := []string{"HOME=" + t.TempDir(), "TERM=xterm", fmt.Sprintf("ATTUNE__WORKER__NAME=w%d", i)}
		for key, address := range good {
			if key == at.key {
				address = fmt.Sprintf(at.address, written)
			}
			environ = append(environ, "ATTUNE__"+key+"="+address)
		}
		group.Go(func() error {
			out, err := firstOutput(ctx, environ, program...)
			if shown := oddPart.FindString(out); shown != "" {
				return fmt.Errorf("%q is in the output of %q with %q:\n%.3000s", shown, program[1:], environ, out)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
}

// oddPasswords are 240 passwords with every sign that parsers of addresses read differently: at the start, in the
// middle and at the end.
func oddPasswords() (list []string) {
	for _, sign := range []string{
		"@", "/", "#", "?", "%", " ", ":", "@@", "/@", "%zz", "%2", "?a=b@", "://", "'", `"`, `\`, "`", "=", "&", "+", ",",
		"[", "]", "{", "}", "|", "^", "<", ">", "ä", "\u202e", "\x1b", "\t", "\n", "' '", " ssw=", "12/34", ";", "~", "!",
		"%00", "\x7f", "\x01", "🔑", "\xff", "@[", "[::1]", "$", "*", "\r", "@no..host", "@:1", ":1@", "--", "/%2f", "",
	} {
		list = append(list, "Qxjz7"+sign+"Vkqw9"+sign+"Qxjz7", sign+"Vkqw9", "Vkqw9"+sign, "77"+sign+"Qxjz7@Vkqw9")
	}
	for _, sign := range []string{"", "@", "/", "%"} {
		list = append(list, strings.Repeat("Vkqw9", 4000)+sign)
	}
	return list
}

// oddPart matches a part of oddPasswords, also one in lower case as parsers write hosts, and behind the percent sign of
// a bad encoding.
var oddPart = regexp.MustCompile(`(?i)Qxj|xjz|jz7|Vkq|kqw|qw9|%Qx|%Vk`)

// refusingDatabase returns the address of a server that refuses every password.
func refusingDatabase(t *testing.T) string {
	t.Helper()
	server, err := (&net.ListenConfig{}).Listen(testkit.Context(t), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				backend := pgproto3.NewBackend(conn, conn)
				for {
					message, err := backend.ReceiveStartupMessage()
					if err != nil {
						return
					}
					if _, startup := message.(*pgproto3.StartupMessage); startup {
						break
					}
					_, _ = conn.Write([]byte("N")) // no encryption
				}
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "wrong password"})
				_ = backend.Flush() // the client may have gone
			})
		}
	})
	return server.Addr().String()
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return parsed.Host
}

// firstOutput returns what a program writes before it ends, or within 0.2 s of its first output. Then it is stopped.
func firstOutput(ctx context.Context, environ []string, argv ...string) (string, error) {
	var out output
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the test's own programs
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &out
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", argv[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for polls := 0; polls < 10; {
		select {
		case <-ended:
			return out.String(), nil
		case <-time.After(20 * time.Millisecond):
			if out.String() != "" {
				polls++
			}
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-ended
	return out.String(), nil
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
