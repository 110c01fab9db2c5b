package check

import (
	"context"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

// compose reads compose.yaml as `docker compose` does: with its parser, which checks the schema of the specification.
func compose(ctx context.Context, environ map[string]string) (*types.Project, error) {
	file := filepath.Join(root(), "compose.yaml")
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir: root(), Environment: environ, ConfigFiles: []types.ConfigFile{{Filename: file}},
	}, func(o *loader.Options) {
		o.SetProjectName("attune", true)
		o.Profiles = []string{"*"}
	})
}

// generated are the files of deploy/secrets.sh, in a folder of the test, and the variables of .env.
func generated(t *testing.T) (dir string, environ map[string]string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "deploy"), 0o755))
	script := filepath.Join(dir, "deploy", "secrets.sh")
	require.NoError(t, os.WriteFile(script, []byte(read(t, "deploy", "secrets.sh")), 0o644))
	out, err := exec.CommandContext(t.Context(), "sh", script).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, ".env"))
	require.NoError(t, err)
	environ = map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		environ[name] = value
	}
	return dir, environ
}

// A second run of the script changes nothing, and only the owner can read its files.
func TestSecretsAreGeneratedOnce(t *testing.T) {
	t.Parallel()
	dir, environ := generated(t)
	require.ElementsMatch(t, []string{
		"ATTUNE_DATABASE_PASSWORD", "ATTUNE_BROKER_PASSWORD", "ATTUNE_ENCRYPTION_KEY", "ATTUNE_UID", "ATTUNE_GID",
	}, slices.Collect(maps.Keys(environ)))
	require.NotEqual(t, "0", environ["ATTUNE_UID"], "containers must not run as root")
	require.GreaterOrEqual(t, len(environ["ATTUNE_ENCRYPTION_KEY"]), 32)
	before := map[string]string{}
	for _, name := range []string{".env", "secrets/token", "secrets/tokens"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "others can read %s", name)
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		before[name] = string(text)
	}
	out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "deploy", "secrets.sh")).CombinedOutput()
	require.NoError(t, err, string(out))
	for name, text := range before {
		after, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, text, string(after), name)
	}
	exports, err := exec.CommandContext(t.Context(), "sh", "-c",
		`eval "$(sh "$0" env)" && echo "$ATTUNE__DATABASE__URL $ATTUNE__MESSAGE_QUEUE__URL"`,
		filepath.Join(dir, "deploy", "secrets.sh")).Output()
	require.NoError(t, err)
	database := "attune:" + environ["ATTUNE_DATABASE_PASSWORD"] + "@127.0.0.1:5432/attune"
	require.Equal(t, "postgresql://"+database+"?sslmode=disable "+
		"amqp://attune:"+environ["ATTUNE_BROKER_PASSWORD"]+"@127.0.0.1:5672/%2f\n", string(exports))
}

// own are the services of this project.
var own = []string{"dashboard", "executor", "migrate", "worker-node", "worker-python", "worker-shell"}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	_, err := compose(t.Context(), nil)
	require.ErrorContains(t, err, "run sh deploy/secrets.sh", "the file has a password of its own")
	_, environ := generated(t)
	project, err := compose(t.Context(), environ)
	require.NoError(t, err)
	names := slices.Sorted(maps.Keys(project.Services))
	require.Equal(t, slices.Sorted(slices.Values(append([]string{"postgres", "rabbitmq"}, own...))), names)
	require.Equal(t, []string{"dashboard"}, project.Services["dashboard"].Profiles)

	cfg, err := config.Load(filepath.Join(root(), "deploy", "config.docker.yaml"), nil)
	require.NoError(t, err)
	file := dockerfile(t)
	for _, name := range own {
		service := project.Services[name]
		require.True(t, service.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Equal(t, environ["ATTUNE_UID"]+":"+environ["ATTUNE_GID"], service.User, name)
		require.NotNil(t, file[target(service)], "%s: no such target in the Dockerfile", service.Image)
		timeout := cfg.Executor.ShutdownTimeout
		if strings.HasPrefix(name, "worker-") {
			timeout = cfg.Worker.ShutdownTimeout + 15*time.Second // in which it reports the outcomes
			require.Equal(t, 45*time.Second, time.Duration(*service.StopGracePeriod), "the published value")
			require.Contains(t, strings.Join(service.Entrypoint, " "), `--name "$ATTUNE_WORKER_NAME-$(hostname)"`,
				"replicas of %s need names of their own", name)
			require.Empty(t, service.Hostname, "replicas of %s need hosts of their own", name)
		}
		require.Greater(t, time.Duration(*service.StopGracePeriod), timeout, name)
		if name == "executor" || strings.HasPrefix(name, "worker-") {
			require.Equal(t, types.ServiceConditionCompletedSuccessfully, service.DependsOn["migrate"].Condition, name)
			health := append([]string{"CMD"}, file[target(service)].health...)
			require.Equal(t, health, []string(service.HealthCheck.Test), name)
		}
		for _, mount := range service.Volumes {
			require.True(t, mount.ReadOnly, "%s may write to %s", name, mount.Target)
		}
	}
	require.Equal(t, 2, *project.Services["executor"].Deploy.Replicas)
	for _, service := range project.Services {
		for _, published := range service.Ports {
			require.Equal(t, "127.0.0.1", published.HostIP, service.Name)
		}
	}
	// Whatever a password is, it comes from a variable that must be set.
	secret := regexp.MustCompile(`(?i)^[^#]*(password|_pass|_key|amqp:|postgresql:).*:`)
	for line := range strings.Lines(read(t, "compose.yaml")) {
		if secret.MatchString(line) {
			require.Contains(t, line, ":?run sh deploy/secrets.sh}")
		}
	}
}

// Every service in the published pages exists, and their other commands find their texts.
func TestPublishedComposeCommands(t *testing.T) {
	t.Parallel()
	_, environ := generated(t)
	project, err := compose(t.Context(), environ)
	require.NoError(t, err)
	page := read(t, "core", "engine", "testdata", "published", "worker-queue-ttl.txt")
	seen := 0
	for line := range strings.Lines(page) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "docker compose "):
			seen++
			command, _, _ := strings.Cut(line, "|")
			for _, word := range strings.Fields(command)[3:] {
				if !strings.HasPrefix(word, "-") {
					require.Contains(t, project.Services, word, line)
				}
			}
		case len(words) > 0 && words[0] == "grep":
			seen++
			grep := exec.CommandContext(t.Context(), "sh", "-c", line)
			grep.Dir = filepath.Join(root(), "deploy") // the file stands beside the others of a deployment
			out, err := grep.CombinedOutput()
			require.NoError(t, err, line)
			for _, want := range []string{"enabled: true", "exchange: attune.dlx", "ttl_ms: 86400000"} {
				require.Contains(t, string(out), want, line)
			}
		}
	}
	require.Greater(t, seen, 8)
}

// target is the target of the Dockerfile that a service's image is built from.
func target(service types.ServiceConfig) string {
	name, _, _ := strings.Cut(service.Image, ":")
	return strings.TrimPrefix(name, "attune-")
}

// container makes the process of a service, for one of its replicas.
func container(t *testing.T, service types.ServiceConfig, files string, servers map[string]string) process {
	t.Helper()
	image := dockerfile(t)[target(service)]
	p := process{name: service.Name, env: map[string]string{}, replace: map[string]string{}}
	p.argv = append(slices.Clone(image.entrypoint), image.command...)
	switch {
	case service.Entrypoint != nil:
		p.argv = slices.Concat([]string(service.Entrypoint), []string(service.Command))
	case service.Command != nil:
		p.argv = slices.Concat(image.entrypoint, []string(service.Command))
	}
	if service.HealthCheck != nil {
		p.health = []string(service.HealthCheck.Test)[1:]
	}
	p.grace = time.Duration(*service.StopGracePeriod)
	p.replace["/tmp"] = t.TempDir()
	for _, mount := range service.Volumes {
		source, err := filepath.Rel(root(), mount.Source)
		require.NoError(t, err)
		p.replace[mount.Target] = filepath.Join(files, source)
	}
	for _, secret := range service.Secrets {
		p.replace["/run/secrets/"+secret.Source] = filepath.Join(files, "secrets", secret.Source)
	}
	p.replace["0.0.0.0:8080"] = "0.0.0.0:" + port(t)
	p.replace["127.0.0.1:9102"] = "127.0.0.1:" + port(t)
	for key, value := range service.Environment {
		p.env[key] = *value
	}
	require.Regexp(t, `^postgresql://attune:[0-9a-f]{48}@postgres:5432/attune$`, p.env["ATTUNE__DATABASE__URL"])
	require.Regexp(t, `^amqp://attune:[0-9a-f]{48}@rabbitmq:5672/%2f$`, p.env["ATTUNE__MESSAGE_QUEUE__URL"])
	maps.Copy(p.env, servers)

	// The configuration names paths and ports of the container.
	path := filepath.Join(t.TempDir(), "config.yaml")
	p.replace["/etc/attune/config.yaml"] = path
	require.NoError(t, os.WriteFile(path, []byte(p.replaced(read(t, "deploy", "config.docker.yaml"))), 0o600))
	return p
}

// TestComposeServicesRun runs the processes of `docker compose up`, requests an execution through the API of each
// replica, and stops everything.
func TestComposeServicesRun(t *testing.T) {
	t.Parallel()
	files, environ := generated(t)
	project, err := compose(t.Context(), environ)
	require.NoError(t, err)
	servers := servers(t)
	service := func(name string) process { return container(t, project.Services[name], files, servers) }

	require.Contains(t, service("migrate").output(t), "schema attune is at version")
	var all []*started
	var urls []string
	for range *project.Services["executor"].Deploy.Replicas {
		p := service("executor")
		urls = append(urls, "http://127.0.0.1:"+strings.TrimPrefix(p.replace["0.0.0.0:8080"], "0.0.0.0:"))
		all = append(all, p.start(t))
	}
	for _, name := range []string{"worker-shell", "worker-python", "worker-node"} {
		all = append(all, service(name).start(t))
	}
	for _, one := range all {
		one.healthy(t)
	}
	token, err := os.ReadFile(filepath.Join(files, "secrets", "token"))
	require.NoError(t, err)
	for _, url := range urls {
		require.Equal(t, http.StatusUnauthorized, request(t, url, ""))
		require.Equal(t, http.StatusCreated, request(t, url, string(token)))
	}
	executed := service("executor")
	executed.argv = []string{"attune-executor", "run", "core.echo", "-p", "message=hi", "--wait"}
	require.Contains(t, executed.output(t), "hi")
	executed.argv = []string{"attune-executor", "workers", "list"}
	workers := executed.output(t)
	for _, name := range []string{"worker-shell", "worker-python", "worker-node"} {
		require.Regexp(t, name+`-\S+ +active`, workers)
	}
	if _, err := os.Stat(filepath.Join(root(), "bin", "attune-tui")); err == nil { // make test builds it
		dashboard := service("dashboard")
		dashboard.argv = append(dashboard.argv, "--snapshot", "workers")
		require.Contains(t, dashboard.output(t), "worker-shell")
	}
	stop(t, all...)
	for _, one := range all {
		require.NotContains(t, one.log.String(), `"level":"ERROR"`, one.name)
		require.NotContains(t, one.log.String(), "every user of this machine", one.name)
	}
}

// request posts the published request for an execution and returns the status.
func request(t *testing.T, url, token string) int {
	t.Helper()
	body := strings.NewReader(`{"action_ref": "core.echo", "parameters": {"message": "test"}}`)
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/executions", body)
	require.NoError(t, err)
	post.Header.Set("Content-Type", "application/json")
	if token != "" {
		post.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(post)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}
