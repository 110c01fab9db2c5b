package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/attune-go/attune/core/placement"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"3": "3.0.0", "3.12": "3.12.0", "3.12.1": "3.12.1", "v20.11.0\n": "20.11.0", "V1.2": "1.2.0",
		"21.0.2.1": "21.0.2", "1.8.0_392": "1.8.0", "3.13.0rc1": "3.13.0-rc1", "3.13.0-beta.2": "3.13.0-beta.2",
		"1.22.3+build.5": "1.22.3", "5.2.15(1)-release": "5.2.15-release", "3.14a2": "3.14.0-a2",
	} {
		v, err := placement.ParseVersion(text)
		require.NoError(t, err, text)
		require.Equal(t, want, v.String(), text)
	}
	for _, text := range []string{"", "v", "python", "3.x", "3..1", "=3", "99999999999999999999"} {
		_, err := placement.ParseVersion(text)
		require.ErrorContains(t, err, "is not a version", text)
	}
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ in, out []string }{
		"":            {in: []string{"0.0.1", "999", "3.0.0-rc1"}},
		"*":           {in: []string{"0.0.1", "999"}},
		"3.12":        {in: []string{"3.12", "3.12.9"}, out: []string{"3.11.9", "3.13.0", "3.12.0-rc1", "3.13.0-rc1"}},
		"3":           {in: []string{"3.0.7"}, out: []string{"3.1.0", "4"}},
		"v3.12.4":     {in: []string{"3.12.4", "3.12.5"}, out: []string{"3.12.3", "3.13"}},
		"=3.12.1":     {in: []string{"3.12.1", "v3.12.1.7"}, out: []string{"3.12.2", "3.12"}},
		"=3.12":       {in: []string{"3.12.0"}, out: []string{"3.12.1"}},
		">=3.12":      {in: []string{"3.12", "4.0"}, out: []string{"3.11.9", "4.0.0-rc1"}},
		">= 3.12, <4": {in: []string{"3.99.1"}, out: []string{"4.0.0", "3.11"}},
		"<=3.12":      {in: []string{"3.12.0", "2.7"}, out: []string{"3.12.1"}},
		">3.12":       {in: []string{"3.12.1"}, out: []string{"3.12.0"}},
		"<4.0":        {in: []string{"3.99.99"}, out: []string{"4.0.0", "4.0.0-rc1"}},
		"~3.12.2":     {in: []string{"3.12.2", "3.12.9"}, out: []string{"3.12.1", "3.13.0"}},
		"~3":          {in: []string{"3.0.9"}, out: []string{"3.1"}},
		"^3.12":       {in: []string{"3.12.0", "3.99"}, out: []string{"4.0", "3.11"}},
		"^0.3.1":      {in: []string{"0.3.9"}, out: []string{"0.4.0", "0.3.0"}},
		"^0.0.3":      {in: []string{"0.0.3"}, out: []string{"0.0.4", "0.0.2"}},
		">=3.13.0-b1": {in: []string{"3.13.0-rc1", "3.13.0", "3.14"}, out: []string{"3.13.0-a9", "3.14.0-a1"}},
		">=3.9,":      {in: []string{"3.9"}, out: []string{"3.8"}},
		">=1.2.3.4":   {in: []string{"1.2.3"}, out: []string{"1.2.2"}},
	} {
		c, err := placement.ParseConstraint(text)
		require.NoError(t, err, text)
		for _, v := range want.in {
			require.True(t, c.Admits(version(t, v)), "%q admits %s", text, v)
		}
		for _, v := range want.out {
			require.False(t, c.Admits(version(t, v)), "%q does not admit %s", text, v)
		}
	}
	for _, text := range []string{">=", "==3", "latest", "3.x", ">=3,nonsense", "3 || 4", ">=3.11 <4"} {
		_, err := placement.ParseConstraint(text)
		require.ErrorContains(t, err, "is not a version constraint", text)
	}
}

func version(t *testing.T, text string) placement.Version {
	t.Helper()
	v, err := placement.ParseVersion(text)
	require.NoError(t, err)
	return v
}

// The order of versions is an order, and every range is one.
func TestVersionsAreOrdered(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) placement.Version {
		part := rapid.Uint64Range(0, 3)
		return placement.Version{
			Major: part.Draw(t, "major"), Minor: part.Draw(t, "minor"), Patch: part.Draw(t, "patch"),
			Pre: rapid.SampledFrom([]string{"", "", "rc.1", "rc.2", "rc", "beta.1", "7", "11"}).Draw(t, "pre"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw.Draw(t, "a"), draw.Draw(t, "b"), draw.Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%s and %s", a, b)
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatalf("%s, %s, %s", a, b, c)
		}
		read, err := placement.ParseVersion(a.String())
		if err != nil || read != a {
			t.Fatalf("%s is read as %s, %v", a, read, err)
		}
		both, err := placement.ParseConstraint(">=" + a.String() + ",<=" + b.String())
		if err != nil {
			t.Fatal(err)
		}
		if c.Pre == "" && both.Admits(c) != (a.Compare(c) <= 0 && c.Compare(b) <= 0) {
			t.Fatalf("%s admits %s: %v", both, c, both.Admits(c))
		}
	})
}
