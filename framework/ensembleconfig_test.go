package framework_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
)

func TestDynamicConfigurationsAreRead(t *testing.T) {
	t.Parallel()
	for configuration, want := range map[string]string{
		"":           "",
		"version=10": "",
		"server.1=a:2888:3888:participant;2181\nserver.2=b:2888:3888;c:2182\r\nserver.3=[::1]:1:2;[::]:3\nversion=1": "[::1]:3 a:2181 c:2182",
		"server.1=a:1:2|b:1:2;0.0.0.0:3":                   "a:3 b:3",
		"server.1=a:1:2|[fe80::1]:1:2:observer;3":          "[fe80::1]:3 a:3",
		"server.1=a:1:2|b:1:2;c:3":                         "c:3",
		"server.1=a:1:2\ngroup.1=1;2":                      "",
		"server.1=a:1:2;x\nserver.2=;1":                    "",
		"server.1=a:1:2:participant;2181;2281":             "a:2181",
		"server.1=a:1:2:participant;0.0.0.0:2181;c:2281":   "a:2181",
		"server.1=a:1:2:participant;[2001:db8::1]:2181;":   "[2001:db8::1]:2181",
		"server.1=a:1:2:participant;;2281":                 "",
		"server.1=a:1:2;1;2;3\nserver.2=b:1:2;1":           "b:1",
		"server.x=a:1:2;1\nserver.2=b:1;1\nserver.3=c:;1":  "",
		"server.1=[a:1:2;1\nserver.2=[]:1:2;1\nserver.3=]": "",
	} {
		if got := strings.Join(framework.EnsembleServers(configuration, false, "h:2181"), " "); got != want {
			t.Errorf("%q names %q, want %q", configuration, got, want)
		}
	}
}

func TestAClientWithTLSIsNotMovedToThePlainPort(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		configuration string
		given         []string
		want          string
	}{
		"the secure address is taken": {
			"server.1=a:1:2:participant;2181;2281\nserver.2=b:1:2;c:2181;d:2282\nversion=1", []string{"h:1"}, "a:2281 d:2282",
		},
		"a member with no other address": {
			"server.1=a:1:2:participant;;2281\nversion=1", []string{"h:1"}, "a:2281",
		},
		"the client's own port is kept where none is named": {
			"server.1=a:1:2:participant;2181\nserver.2=b:1:2;c:2182\nversion=1", []string{"h:2281", "i:2281"}, "a:2281 c:2281",
		},
		"none is guessed where the ports differ": {
			"server.1=a:1:2:participant;2181\nversion=1", []string{"h:2281", "i:2282"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(framework.EnsembleServers(tc.configuration, true, tc.given...), " "); got != tc.want {
				t.Errorf("goes to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAConfigurationIsReadWithAllItsMembers(t *testing.T) {
	t.Parallel()
	text := "server.1=a:2888:3888:participant;2181;2281\nserver.2=b:1:2|[::1]:3:4:observer;0.0.0.0:5\nserver.7=c:1:2\ngroup.1=1:2\nversion=1f00000003"
	config, err := framework.ParseEnsembleConfig(text)
	if err != nil || config.Version != 0x1f00000003 || config.Text != text || len(config.Members) != 3 {
		t.Fatalf("%+v, %v", config, err)
	}
	m := config.Members[1]
	if m.ID != 2 || !m.Observer || !slices.Equal(m.Peers, []string{"b:1:2", "[::1]:3:4"}) ||
		!slices.Equal(m.Clients, []string{"b:5", "[::1]:5"}) || m.SecureClients != nil {
		t.Errorf("%+v", m)
	}
	if m := config.Members[0]; m.Observer || !slices.Equal(m.SecureClients, []string{"a:2281"}) {
		t.Errorf("%+v", m)
	}
	if m := config.Members[2]; m.ID != 7 || m.Clients != nil {
		t.Errorf("%+v", m)
	}
	_, err = framework.ParseEnsembleConfig("server.1=a:1:2;x\nversion=g")
	if err == nil || !strings.Contains(err.Error(), "server.1") || !strings.Contains(err.Error(), `version "g"`) {
		t.Errorf("the error %v does not name all faults", err)
	}
}

func FuzzEnsembleConfig(f *testing.F) {
	f.Add("server.1=a:1:2|[::1]:3:4:observer;0.0.0.0:5;6\nversion=1f")
	f.Add("server.1=[::]:1:2;[::]:3\nversion=-1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, secure := range []bool{false, true} {
			for _, server := range framework.EnsembleServers(text, secure, "h:2281") {
				if _, _, err := framework.ParseConnectString(server); err != nil {
					t.Errorf("%q names %q: %v", text, server, err)
				}
			}
		}
	})
}
