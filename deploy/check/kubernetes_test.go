package check

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/lab/testkit"
)

// object is a manifest as far as these tests read it.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Secrets  map[string]string `yaml:"stringData"`
	Spec     struct {
		Template struct{ Spec pod }
	}
}

type pod struct {
	Grace      int `yaml:"terminationGracePeriodSeconds"`
	Containers []struct {
		Name, Image string
		Args        []string
		Env         []struct {
			Name, Value string
			From        struct {
				Field struct {
					Path string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		Ports []struct {
			Port int `yaml:"containerPort"`
		}
		Mounts []struct {
			Name, SubPath string
			Path          string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
}

// manifests reads the objects of deploy/kubernetes, by kind and name.
func manifests(t *testing.T) map[string]object {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(), "deploy", "kubernetes", "*.yaml"))
	require.NoError(t, err)
	all := map[string]object{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var o object
			err := decoder.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, path)
			all[o.Kind+" "+o.Metadata.Name] = o
		}
	}
	return all
}

// workloads are the manifests with pods.
var workloads = map[string]string{ // to the target of the Dockerfile
	"Job ": "executor", "Deployment attune-executor": "executor", "StatefulSet attune-worker-shell": "worker-shell",
}

// podProcess makes the process of a pod's container, with the mounted files in folders of the test.
func podProcess(t *testing.T, all map[string]object, name string) process {
	t.Helper()
	spec := all[name].Spec.Template.Spec
	require.Len(t, spec.Containers, 1, name)
	container := spec.Containers[0]
	require.Contains(t, container.Image, "attune-"+workloads[name])
	p := process{name: name, env: map[string]string{}, replace: map[string]string{}}
	p.argv = slices.Concat(dockerfile(t)[workloads[name]].entrypoint, container.Args)
	p.grace = time.Duration(spec.Grace) * time.Second
	for _, variable := range container.Env {
		p.env[variable.Name] = variable.Value
		if variable.From.Field.Path == "metadata.name" {
			p.env[variable.Name] = all[name].Metadata.Name + "-0"
		}
	}
	dir := t.TempDir()
	text := all["ConfigMap attune"].Data["attune.yaml"]
	for _, mount := range container.Mounts {
		switch mount.Name {
		case "secrets":
			p.replace[mount.Path] = filepath.Join(dir, "secrets")
			require.NoError(t, os.Mkdir(p.replace[mount.Path], 0o700))
			for file, secret := range all["Secret attune"].Secrets {
				require.NoError(t, os.WriteFile(filepath.Join(p.replace[mount.Path], file), []byte(secret), 0o600))
			}
		case "tmp":
			p.replace[mount.Path] = t.TempDir()
		}
	}
	for _, listening := range container.Ports {
		old := ":8080"
		if listening.Port == 9102 {
			old = ":9102"
		}
		p.replace[old] = "0.0.0.0:" + port(t) // beyond loopback, as in a pod
		p.health = []string{"attune-executor", "health", "--address", p.replace[old]}
	}
	text = p.replaced(text)
	for _, mount := range container.Mounts {
		if mount.Name == "config" {
			p.replace[mount.Path] = filepath.Join(dir, "attune.yaml")
			require.NoError(t, os.WriteFile(p.replace[mount.Path], []byte(text), 0o600))
		}
	}
	return p
}

// TestPodsLoadTheirConfiguration: it is complete, and shorter than the grace period.
func TestPodsLoadTheirConfiguration(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	for name := range workloads {
		p := podProcess(t, all, name)
		cfg, err := config.Load(p.replace["/etc/attune/attune.yaml"], nil)
		require.NoError(t, err, name)
		require.Empty(t, cfg.Warnings, name)
		explained := p
		explained.argv = []string{"attune-executor", "config", "explain"}
		require.Regexp(t, `database.url +postgresql://attune:\*\*\*@postgres:5432/attune`, explained.output(t))
		require.Contains(t, explained.output(t), "derived from message_queue.url")
		switch name {
		case "Deployment attune-executor":
			require.Greater(t, p.grace, cfg.Executor.ShutdownTimeout)
		case "StatefulSet attune-worker-shell":
			require.Greater(t, p.grace, cfg.Worker.ShutdownTimeout+15*time.Second)
		}
	}
}

// TestKustomizeBuildsTheManifests asks kubectl, where it is installed.
func TestKustomizeBuildsTheManifests(t *testing.T) {
	t.Parallel()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl")
	}
	folder := filepath.Join(root(), "deploy", "kubernetes")
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", folder).Output()
	require.NoError(t, err)
	for _, want := range []string{"image: registry.example.com/attune-executor:", "kind: PodDisruptionBudget"} {
		require.Contains(t, string(out), want)
	}
}

// TestPodsRun starts the processes of the containers with the mounted configuration.
func TestPodsRun(t *testing.T) {
	t.Parallel()
	testkit.NeedsSlow(t, "run the containers of Kubernetes")
	all, servers := manifests(t), servers(t)
	pod := func(name string) process {
		p := podProcess(t, all, name)
		// A file of a password is for the URL of the file, which the environment overrides.
		p.env["ATTUNE__DATABASE__PASSWORD_FILE"], p.env["ATTUNE__MESSAGE_QUEUE__PASSWORD_FILE"] = "", ""
		maps.Copy(p.env, servers)
		return p
	}
	require.Contains(t, pod("Job ").output(t), "schema attune is at version")
	engine, worker := pod("Deployment attune-executor").start(t), pod("StatefulSet attune-worker-shell").start(t)
	engine.healthy(t)
	worker.healthy(t)
	run := engine.process
	run.argv = []string{"attune-executor", "run", "core.echo", "-p", "message=hi", "--wait"}
	require.Contains(t, run.output(t), "hi")
	run.argv = []string{"attune-executor", "workers", "list"}
	require.Contains(t, run.output(t), "attune-worker-shell-0")
	stop(t, engine, worker)
}
