package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// grafana is a dashboard of docs/grafana, as far as it is checked.
type grafana struct {
	UID, Title, Description string
	Panels                  []struct {
		ID                       int
		Title, Description, Type string
		Datasource               struct{ UID string }
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Links []struct{ URL string }
}

func dashboards(t *testing.T) map[string]grafana {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "grafana", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	found := map[string]grafana{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var one grafana
		require.NoError(t, json.Unmarshal(text, &one), file)
		found[filepath.Base(file)] = one
	}
	return found
}

var (
	promNames    = regexp.MustCompile(`attune_[a-z_]+`)
	promBy       = regexp.MustCompile(`by \(([a-z_, ]*)\)`)
	promSelector = regexp.MustCompile(`(attune_[a-z_]+)\{([^}]*)\}`)
	promMatcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
)

// metricOf finds the metric of a series: a histogram has several.
func metricOf(metrics map[string]metric, series string) (metric, bool) {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if m, ok := metrics[strings.TrimSuffix(series, suffix)]; ok && strings.HasSuffix(series, suffix) &&
			m.kind == "histogram" {
			m.labels += ", le"
			return m, true
		}
	}
	m, ok := metrics[series]
	return m, ok && m.kind != "histogram"
}

func labelsOf(m metric) []string { return strings.Split(m.labels, ", ") }

// TestDashboardsNameMetricsThatExist: a panel about nothing is empty for ever.
func TestDashboardsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	metrics := registered(t)
	for file, one := range dashboards(t) {
		for _, panel := range one.Panels {
			for _, target := range panel.Targets {
				names := promNames.FindAllString(target.Expr, -1)
				require.NotEmpty(t, names, "%s: %s", file, panel.Title)
				for _, name := range names {
					m, ok := metricOf(metrics, name)
					require.True(t, ok, "%s: %s: no metric %s", file, panel.Title, name)
					for _, by := range promBy.FindAllStringSubmatch(target.Expr, -1) {
						for label := range strings.SplitSeq(by[1], ", ") {
							require.Contains(t, labelsOf(m), label, "%s: %s: %s", file, panel.Title, target.Expr)
						}
					}
					rated := regexp.MustCompile(`(rate|increase)\(` + name + `\b`).MatchString(target.Expr)
					require.Equal(t, m.kind != "gauge", rated, "%s: %s: rates are of counters: %s", file, panel.Title,
						target.Expr)
				}
				for _, selector := range promSelector.FindAllStringSubmatch(target.Expr, -1) {
					m, _ := metricOf(metrics, selector[1])
					for _, matcher := range promMatcher.FindAllStringSubmatch(selector[2], -1) {
						require.Contains(t, labelsOf(m), matcher[1], "%s: %s", file, target.Expr)
					}
				}
			}
		}
	}
}

// TestDashboardsAreWellFormed: Grafana loads them beside others, with any data source.
func TestDashboardsAreWellFormed(t *testing.T) {
	t.Parallel()
	all := dashboards(t)
	uids := map[string]bool{}
	for file, one := range all {
		require.Equal(t, "attune-"+strings.TrimSuffix(file, ".json"), one.UID)
		uids[one.UID] = true
		require.NotEmpty(t, one.Title, one.Description, file)
		require.Equal(t, "datasource", one.Templating.List[0].Type, file)
		require.Equal(t, "datasource", one.Templating.List[0].Name, file)
		ids, titles := map[int]bool{}, map[string]bool{}
		for i, panel := range one.Panels {
			where := file + ": " + panel.Title
			require.False(t, ids[panel.ID] || titles[panel.Title] || panel.ID == 0, where)
			ids[panel.ID], titles[panel.Title] = true, panel.Type == "timeseries"
			require.NotEmpty(t, panel.Description, where)
			require.Equal(t, "${datasource}", panel.Datasource.UID, where)
			refs := map[string]bool{}
			for _, target := range panel.Targets {
				require.Equal(t, "${datasource}", target.Datasource.UID, where)
				require.False(t, refs[target.RefID], where)
				refs[target.RefID] = true
			}
			at := panel.GridPos
			require.LessOrEqual(t, at.X+at.W, 24, where)
			for _, other := range one.Panels[:i] {
				o := other.GridPos
				require.False(t, at.X < o.X+o.W && o.X < at.X+at.W && at.Y < o.Y+o.H && o.Y < at.Y+at.H,
					"%s lies on %s", where, other.Title)
			}
		}
	}
	for _, one := range all {
		require.Len(t, one.Links, len(all)-1)
		for _, link := range one.Links {
			require.True(t, uids[strings.TrimPrefix(link.URL, "/d/")], link.URL)
		}
	}
}

// TestPrometheusReadsTheDashboards parses every expression as Prometheus does.
func TestPrometheusReadsTheDashboards(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: `make test-rules` installs it and runs this test")
	}
	var rules []map[string]string
	for _, one := range dashboards(t) {
		for _, panel := range one.Panels {
			for _, target := range panel.Targets {
				rules = append(rules, map[string]string{
					"record": fmt.Sprintf("panel:%d", len(rules)),
					"expr":   strings.ReplaceAll(target.Expr, "$action", ".*"),
				})
			}
		}
	}
	require.Greater(t, len(rules), 50)
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "panels.yml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	out, err := exec.CommandContext(t.Context(), tool, "check", "rules", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
