package framework_test

import (
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest
	"encoding/base64"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// A tracked is a client that follows a configuration, in a zone of three servers.
type tracked struct {
	*framework.Client
	*zone
	config string
	seen   trail
}

func newTracked(t *testing.T, srv *zkserver.Server, connectString string) *tracked {
	t.Helper()
	tr := &tracked{zone: newZone(t, srv, "", "a.test", "b.test", "c.test")}
	tr.Client = connect(t, connectString, framework.WithDialer(tr.dial), framework.WithStateListener(tr.seen.add), framework.WithSessionTimeout(span))
	tr.config = mustCreate(t, tr.Client, "/config", "")
	framework.Track(tr.Client, tr.AbsolutePath(tr.config))
	sleep(time.Second)
	return tr
}

// says writes a configuration, and waits until the client has read it.
func (tr *tracked) says(t *testing.T, configuration string) {
	t.Helper()
	must.Get(tr.Set(t.Context(), tr.config, []byte(configuration), framework.AnyVersion))(t)
	sleep(time.Second)
}

func TestEnsembleTracking(t *testing.T) {
	t.Parallel()
	runVirtually(t, "leaves a server that was removed", func(t *testing.T, srv *zkserver.Server) {
		tr := newTracked(t, srv, "a.test")
		tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
		tr.seen.await(t, connecting, connected, suspended, connected)
		wantEqual(t, "server", tr.Server(), "b.test:2181")
	})
	runVirtually(t, "keeps the chroot, which a configuration does not name", func(t *testing.T, srv *zkserver.Server) {
		tr := newTracked(t, srv, "a.test/app")
		tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
		wantList(t, "servers", tr.Servers(), []string{"b.test:2181"})
		mustCreate(t, tr.Client, "/node", "")
		wantExists(t, virtual(t, srv), "/app/node", true)
	})
	runVirtually(t, "stays at a server that remains", func(t *testing.T, srv *zkserver.Server) {
		tr := newTracked(t, srv, "a.test")
		tr.says(t, "server.1=b.test:1:2;2181\nserver.2=a.test:1:2;2181\nversion=1")
		tr.seen.await(t, connecting, connected)
		wantList(t, "servers", tr.Servers(), []string{"a.test:2181", "b.test:2181"})
	})
	runVirtually(t, "does not give a connection that works for servers that cannot be reached", func(t *testing.T, srv *zkserver.Server) {
		tr := newTracked(t, srv, "a.test")
		tr.proxies["b.test"].Refuse()
		tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
		sleep(time.Minute)
		tr.seen.await(t, connecting, connected)
		tr.proxies["b.test"].Heal()
		sleep(time.Minute)
		tr.seen.await(t, connecting, connected, suspended, connected)
		wantEqual(t, "server", tr.Server(), "b.test:2181")
	})
	runVirtually(t, "falls back on the connect string", func(t *testing.T, srv *zkserver.Server) {
		tr := newTracked(t, srv, "a.test")
		tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
		tr.proxies["b.test"].Refuse()
		srv.Cut()
		sleep(time.Second)
		must.Get2(tr.Children(t.Context(), "/"))(t)
		wantList(t, "servers", tr.Servers(), []string{"b.test:2181"})
	})
	runVirtually(t, "never goes back to an older configuration", func(t *testing.T, srv *zkserver.Server) {
		tr := newTracked(t, srv, "a.test")
		for _, configuration := range []string{
			"server.1=b.test:1:2;2181\nversion=100000002",
			"server.1=c.test:1:2;2181\nversion=ffff",
			"server.1=c.test:1:2;2181",
		} {
			tr.says(t, configuration)
			wantList(t, "servers", tr.Servers(), []string{"b.test:2181"})
		}
		tr.says(t, "server.1=c.test:1:2;2181\nversion=100000003")
		wantList(t, "servers", tr.Servers(), []string{"c.test:2181"})
	})
}

// TestTracking_of_a_configuration_without_addresses follows one configuration after another.
func TestTracking_of_a_configuration_without_addresses(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		first, second := srv.Frontend(0).Addr(), srv.Frontend(1).Addr()
		c := connect(t, first, framework.WithDialer(srv.Dial))
		config := mustCreate(t, c, "/config", "")
		framework.Track(c, config)
		host, port := must.Get2(net.SplitHostPort(second))(t)
		for _, tc := range []struct{ configuration, want string }{
			{"server.1=127.0.0.1:1:2:participant\nversion=1", first},
			{"server.1=" + host + ":1:2:participant;0.0.0.0:" + port + "\nversion=2", second},
			{"server.1=127.0.0.1:1:2:participant\nversion=3", second},
		} {
			must.Get(c.Set(t.Context(), config, []byte(tc.configuration), framework.AnyVersion))(t)
			synctest.Wait()
			wantList(t, "servers", c.Servers(), []string{tc.want})
		}
	}, zkserver.WithFrontends(2))
}

// superFlag makes a server take "super:secret" for an administrator.
func superFlag() zktest.Option {
	digest := sha1.Sum([]byte("super:" + secret)) //nolint:gosec // as above
	return zktest.WithJVMFlags("-Dzookeeper.DigestAuthenticationProvider.superDigest=super:" + base64.StdEncoding.EncodeToString(digest[:]))
}

func asSuper() framework.Option { return framework.WithAuth("digest", []byte("super:"+secret)) }

// needNamespaces skips a test, loudly, where members cannot have networks of their own.
func needNamespaces(t *testing.T) {
	t.Helper()
	err := zktest.Namespaces()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" && os.Geteuid() == 0:
		t.Fatal(err)
	default:
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
}

func TestReconfigChangesTheEnsemble(t *testing.T) {
	t.Parallel()
	needNamespaces(t) // members that see each other behind forwarders do not agree on a configuration
	ensemble := zktest.RunEnsemble(t, 3, zktest.WithNamespaces(), superFlag(), zktest.WithSetting("reconfigEnabled", "true"))
	leader := must.Get(ensemble.Leader(within(t, patience)))(t)
	c := connect(t, leader.Addr()+"/chroot", asSuper(), framework.WithCompression())
	before, err := c.Config(t.Context())
	if err != nil || len(before.Members) != 3 {
		t.Fatalf("%+v, %v", before, err)
	}
	var leaving framework.Member
	for i, server := range ensemble.Servers {
		if server != leader {
			leaving = before.Members[i]
		}
	}
	stranger := connect(t, leader.Addr())
	_, err = stranger.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{leaving.ID}}, framework.AnyVersion)
	wantErr(t, "without a credential", err, framework.ErrNoAuth)
	_, err = c.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{leaving.ID}}, before.Version+1)
	wantErr(t, "of another version", err, framework.ErrBadVersion)

	smaller, err := c.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{leaving.ID}}, before.Version)
	if err != nil || len(smaller.Members) != 2 || smaller.Version <= before.Version {
		t.Fatalf("%+v, %v", smaller, err)
	}
	back := "server." + strconv.FormatInt(leaving.ID, 10) + "=" + leaving.Peers[0] + ":participant;127.0.0.1:1"
	larger, err := c.Reconfig(t.Context(), framework.ConfigChange{Join: []string{back}}, smaller.Version)
	if err != nil || len(larger.Members) != 3 || larger.Version <= smaller.Version {
		t.Fatalf("%+v, %v", larger, err)
	}
	for _, m := range larger.Members {
		if m.ID == leaving.ID && strings.Join(m.Clients, " ") != net.JoinHostPort("127.0.0.1", "1") {
			t.Errorf("%+v", m)
		}
	}
	if now, err := stranger.Config(t.Context()); err != nil || now.Version != larger.Version {
		t.Errorf("another client reads version %#x, want %#x (%v)", now.Version, larger.Version, err)
	}
}

// Whether a Reconfig had an effect is not known once it was sent, so it is not sent again.
func TestReconfigIsSentOnce(t *testing.T) {
	for _, loss := range []fault.Action{fault.CutBefore, fault.DropReply} {
		for _, version := range []int64{framework.AnyVersion, 7} {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c, proxy := proxied(t, srv)
				proxy.Rules().Add(fault.Rule{Op: fault.Other, Action: loss})
				_, err := c.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{1}}, version)
				wantErr(t, "Reconfig", err, framework.ErrUnknownOutcome)
				sleep(time.Minute)
				wantEqual(t, "requests", proxy.Count(fault.Other), 1)
			})
		}
	}
}

func TestReconfigOfAServerThatIsNotSetUpForIt(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	c := connect(t, server.Addr(), framework.WithEnsembleTracking()) // which has nothing to follow
	config, err := c.Config(t.Context())
	if err != nil || len(config.Members) != 0 {
		t.Errorf("%+v, %v", config, err)
	}
	wantList(t, "servers", c.Servers(), []string{server.Addr()})
	_, err = c.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{1}}, framework.AnyVersion)
	op := new(framework.OpError)
	if !errors.As(err, &op) || op.Code() != -123 || !strings.HasSuffix(err.Error(), "the servers do not allow reconfiguration") {
		t.Errorf("reconfig: %v, want code -123", err)
	}
}

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
		wantEqual(t, "servers by "+configuration, strings.Join(framework.EnsembleServers(configuration, false, "h:2181"), " "), want)
	}
	// A client with TLS is not moved to a plain port. Its own is kept where none is named, unless it has several.
	for configuration, want := range map[string][2]string{ // for a client with several ports, and for one with one
		"server.1=a:1:2:participant;2181;2281\nserver.2=b:1:2;c:2181;d:2282": {"a:2281 d:2282", "a:2281 d:2282"},
		"server.1=a:1:2:participant;;2281":                                   {"a:2281", "a:2281"},
		"server.1=a:1:2:participant;2181\nserver.2=b:1:2;c:2182":             {"", "a:2281 c:2281"},
	} {
		for i, given := range []string{"i:2282", "i:2281"} {
			got := framework.EnsembleServers(configuration+"\nversion=1", true, "h:2281", given)
			wantEqual(t, "servers by "+configuration, strings.Join(got, " "), want[i])
		}
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
	wantText(t, err, "server.1", `version "g"`)
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
