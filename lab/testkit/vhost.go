package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// serial counts databases and virtual hosts of this test binary.
var serial atomic.Int64

// uniqueName returns the prefix, the process id and a number, so that abandoned recognises the names of killed
// test binaries.
func uniqueName(prefix string) string {
	return fmt.Sprintf("%s%d_%d", prefix, os.Getpid(), serial.Add(1))
}

// abandoned reports whether an ended process has created the name with uniqueName.
func abandoned(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return false
	}
	number, _, _ := strings.Cut(rest, "_")
	pid, err := strconv.Atoi(number)
	return err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

const vhostPrefix = "attune_test_"

// VHost creates a virtual host for this test, with all rights for the user of the returned AMQP URL, and deletes
// it with its connections at the end of the test, which runs in Parallel.
func VHost(t testing.TB) string {
	t.Helper()
	Parallel(t)
	found := sharedServers(t)
	amqpURL, err := url.Parse(found.amqp)
	require.NoError(t, err)
	name := uniqueName(vhostPrefix)
	ctx := Context(t)
	require.NoError(t, manage(ctx, found.management, http.MethodPut, "/api/vhosts/"+name, nil, nil))
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		require.NoError(t, manage(ctx, found.management, http.MethodDelete, "/api/vhosts/"+name, nil, nil))
	})
	rights := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	require.NoError(t, manage(ctx, found.management, http.MethodPut,
		"/api/permissions/"+name+"/"+url.PathEscape(amqpURL.User.Username()), rights, nil))
	amqpURL.Path, amqpURL.RawPath = "/"+name, ""
	return amqpURL.String()
}

// VHostName returns the virtual host in an AMQP URL.
func VHostName(t testing.TB, amqpURL string) string {
	t.Helper()
	parsed, err := url.Parse(amqpURL)
	require.NoError(t, err)
	return strings.TrimPrefix(parsed.Path, "/")
}

// ManagementURL returns the URL of the shared broker's management plugin with credentials.
func ManagementURL(t testing.TB) string {
	t.Helper()
	return sharedServers(t).management
}

// Manage calls the shared broker's management API with a path such as /api/queues/{vhost}. It encodes body and
// decodes answer as JSON; both may be nil.
func Manage(t testing.TB, method, path string, body, answer any) {
	t.Helper()
	require.NoError(t, manage(Context(t), ManagementURL(t), method, path, body, answer))
}

// Cut closes a connection to the shared broker by its name, from the broker's side. It reports whether it existed:
// the management API also lists ended ones.
func Cut(t testing.TB, name string) bool {
	t.Helper()
	err := manage(Context(t), ManagementURL(t), http.MethodDelete, "/api/connections/"+url.PathEscape(name), nil, nil)
	if errors.Is(err, errAbsent) {
		return false
	}
	require.NoError(t, err)
	return true
}

var errAbsent = errors.New("404 Not Found")

func manage(ctx context.Context, base, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode the body of %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, content)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = response.Body.Close() }() // read to its end below
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%s %s: %w: %s", method, path, errAbsent, raw)
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, raw)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// sweepVHosts deletes the virtual hosts of killed test binaries on the private broker.
func sweepVHosts(ctx context.Context, management string) error {
	var vhosts []struct {
		Name string `json:"name"`
	}
	if err := manage(ctx, management, http.MethodGet, "/api/vhosts?columns=name", nil, &vhosts); err != nil {
		return err
	}
	for _, vhost := range vhosts {
		if abandoned(vhost.Name, vhostPrefix) {
			// Another binary may delete it at the same time.
			_ = manage(ctx, management, http.MethodDelete, "/api/vhosts/"+vhost.Name, nil, nil)
		}
	}
	return nil
}
