package zkversion_test

import (
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkversion"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]zkversion.Version{
		"3.8.4":             {Major: 3, Minor: 8, Patch: 4},
		"3.9":               {Major: 3, Minor: 9},
		"v3.10.0":           {Major: 3, Minor: 10},
		"3.8.0+deb12u2":     zkversion.Debian,
		"3.8.0-11+deb12u2":  zkversion.Debian,
		"3.8.0-11+deb12u11": zkversion.Debian,
		"3.8.0-11+deb12u1":  {Major: 3, Minor: 8},
		"3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee": {Major: 3, Minor: 9, Patch: 3},
		zkversion.Debian.String():                        zkversion.Debian,
	} {
		if got, err := zkversion.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "3", "three", "3.8.x", "3.99999999999999999999"} {
		if got, err := zkversion.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", text, got)
		}
	}
}

func TestBehaviors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		behavior zkversion.Behavior
		with     []string
		without  []string
	}{
		{zkversion.ExistsNeedsRead, []string{"3.8.4", "3.8.5", "3.9.2", "3.9.6", "3.10.0"}, []string{"3.6.4", "3.8.0", "3.8.0+deb12u2", "3.8.3", "3.9.0", "3.9.1"}},
		{zkversion.FiltersEvents, []string{"3.8.0+deb12u2", "3.8.4", "3.9.2"}, []string{"3.7.2", "3.8.0", "3.9.1"}},
		{zkversion.EventsHaveZxid, []string{"3.9.0", "3.10.0", "4.0.0"}, []string{"3.8.0", "3.8.5"}},
		{zkversion.ResumesReadOnly, []string{"3.6.0", "3.6.4"}, []string{"3.7.0", "3.9.6"}},
		{zkversion.FiltersMissed, []string{"3.9.6"}, []string{"3.9.3", "3.8.4"}},
	} {
		for _, text := range tt.with {
			if !must.Get(zkversion.Parse(text))(t).Has(tt.behavior) {
				t.Errorf("%s lacks behavior %d", text, tt.behavior)
			}
		}
		for _, text := range tt.without {
			if must.Get(zkversion.Parse(text))(t).Has(tt.behavior) {
				t.Errorf("%s has behavior %d", text, tt.behavior)
			}
		}
	}
}

func TestKnows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"3.6.4": false, "3.7.0": true, "3.9.6": true} {
		v := zkversion.Must(text)
		if v.Knows(proto.OpWhoAmI) != want || !v.Knows(proto.OpAddWatch) {
			t.Errorf("%s knows whoAmI: %v, addWatch: %v; want %v, true", text, v.Knows(proto.OpWhoAmI), v.Knows(proto.OpAddWatch), want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"3.8.0":         {"ZOOKEEPER-1675", "ZOOKEEPER-4537", "ZOOKEEPER-4466", "ZOOKEEPER-2623", "CVE-2024-23944"},
		"3.8.0+deb12u2": {"ZOOKEEPER-1675", "ZOOKEEPER-4537", "ZOOKEEPER-4466", "ZOOKEEPER-2623"},
		"3.9.3":         {"ZOOKEEPER-1675"},
	} {
		var got []string
		for _, f := range must.Get(zkversion.Parse(text))(t).Faults() {
			got = append(got, f.Issue)
		}
		if !slices.Equal(got, want) {
			t.Errorf("faults of %s: %v, want %v", text, got, want)
		}
	}
}
