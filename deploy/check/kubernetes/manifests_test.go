// Package kubernetes decodes the manifests of deploy/kubernetes with the types of the Kubernetes API, which know every
// field.
package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that the manifests may have.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                     func() any { return &apps.Deployment{} },
	"apps/v1 StatefulSet":                    func() any { return &apps.StatefulSet{} },
	"autoscaling/v2 HorizontalPodAutoscaler": func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"batch/v1 Job":                           func() any { return &batch.Job{} },
	"policy/v1 PodDisruptionBudget":          func() any { return &policy.PodDisruptionBudget{} },
	"v1 ConfigMap":                           func() any { return &core.ConfigMap{} },
	"v1 Namespace":                           func() any { return &core.Namespace{} },
	"v1 Secret":                              func() any { return &core.Secret{} },
	"v1 Service":                             func() any { return &core.Service{} },
}

func decoded(t *testing.T) map[string][]any {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "kubernetes", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string][]any{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if filepath.Base(path) == "kustomization.yaml" {
			continue // kubectl reads it
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var head struct{ APIVersion, Kind string }
			require.NoError(t, yaml.Unmarshal(document, &head), path)
			kind := head.APIVersion + " " + head.Kind
			require.Contains(t, kinds, kind, path)
			object := kinds[kind]()
			require.NoError(t, yaml.UnmarshalStrict(document, object), "%s: %s", path, kind)
			all[kind] = append(all[kind], object)
		}
	}
	return all
}

// typed are the objects of a kind by their type.
func typed[T any](t *testing.T, objects []any) (list []T) {
	t.Helper()
	for _, object := range objects {
		one, ok := object.(T)
		require.True(t, ok, "%T", object)
		list = append(list, one)
	}
	return list
}

func TestManifestsHaveOnlyFieldsOfTheAPI(t *testing.T) {
	t.Parallel()
	all := decoded(t)
	for kind := range kinds {
		require.Contains(t, all, kind, "no manifest has this kind: remove it from the table")
	}
	require.Error(t, yaml.UnmarshalStrict([]byte("spec: {replica: 2}"), &apps.Deployment{}), "the check finds nothing")
}

// TestPodsAreRestricted holds every pod to the standard that the namespace enforces
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/, restricted), and to what lets it stop in time.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	all := decoded(t)
	pods := map[string]core.PodTemplateSpec{}
	selectors := map[string]map[string]string{}
	for _, d := range typed[*apps.Deployment](t, all["apps/v1 Deployment"]) {
		pods[d.Name], selectors[d.Name] = d.Spec.Template, d.Spec.Selector.MatchLabels
	}
	for _, s := range typed[*apps.StatefulSet](t, all["apps/v1 StatefulSet"]) {
		pods[s.Name], selectors[s.Name] = s.Spec.Template, s.Spec.Selector.MatchLabels
	}
	for name, selector := range selectors {
		require.Subset(t, pods[name].Labels, selector, name)
	}
	budgets, services := map[string]bool{}, map[string]bool{}
	for _, b := range typed[*policy.PodDisruptionBudget](t, all["policy/v1 PodDisruptionBudget"]) {
		require.Equal(t, selectors[b.Name], b.Spec.Selector.MatchLabels, b.Name)
		budgets[b.Name] = true
	}
	for _, s := range typed[*core.Service](t, all["v1 Service"]) {
		require.Equal(t, selectors[s.Name], s.Spec.Selector, s.Name)
		services[s.Name] = true
	}
	for name := range selectors {
		require.True(t, budgets[name] && services[name], name)
		container := pods[name].Spec.Containers[0]
		for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			require.NotNil(t, probe, name)
			require.Equal(t, container.Ports[0].Name, probe.HTTPGet.Port.StrVal, name)
		}
		require.Positive(t, *pods[name].Spec.TerminationGracePeriodSeconds, name)
	}
	for _, j := range typed[*batch.Job](t, all["batch/v1 Job"]) {
		pods["migrate"] = j.Spec.Template
	}
	for name, template := range pods {
		spec := template.Spec
		require.True(t, *spec.SecurityContext.RunAsNonRoot, name)
		require.Positive(t, *spec.SecurityContext.RunAsUser, name)
		require.Equal(t, core.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type, name)
		require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC, name)
		require.False(t, *spec.AutomountServiceAccountToken, name)
		for _, volume := range spec.Volumes {
			require.True(t, volume.ConfigMap != nil || volume.Secret != nil || volume.EmptyDir != nil, name)
		}
		for _, container := range spec.Containers {
			require.False(t, *container.SecurityContext.AllowPrivilegeEscalation, name)
			require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem, name)
			require.Equal(t, []core.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop, name)
			require.NotEmpty(t, container.Resources.Requests, name)
			require.NotEmpty(t, container.Resources.Limits, name)
		}
	}
}
