package framework_test

import (
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest
	"encoding/base64"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zktest"
)

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
	leader, err := ensemble.Leader(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
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
	_, err = stranger.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{leaving.ID}}, framework.AnyConfig)
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

func TestReconfigOfAServerThatIsNotSetUpForIt(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr())
	config, err := c.Config(t.Context())
	if err != nil || len(config.Members) != 0 {
		t.Errorf("%+v, %v", config, err)
	}
	_, err = c.Reconfig(t.Context(), framework.ConfigChange{Leave: []int64{1}}, framework.AnyConfig)
	wantErr(t, "reconfig", err, framework.ErrReconfigDisabled)
}

func TestReconfig_refuses_faulty_arguments(t *testing.T) {
	t.Parallel()
	c := newClient(t, "localhost", framework.WithDialer(refuse))
	const good = "server.1=a:1:2:participant;2181"
	for want, tc := range map[string]struct {
		change  framework.ConfigChange
		version int64
	}{
		"must have Join, Leave or Members":              {framework.ConfigChange{}, framework.AnyConfig},
		"must not have Members beside":                  {framework.ConfigChange{Members: []string{good}, Leave: []int64{1}}, framework.AnyConfig},
		`server "server.1=a"`:                           {framework.ConfigChange{Join: []string{"server.1=a"}}, framework.AnyConfig},
		"must be one server":                            {framework.ConfigChange{Members: []string{good + "," + good}}, framework.AnyConfig},
		"version -2: must be at least 0, or AnyConfig ": {framework.ConfigChange{Leave: []int64{1}}, -2},
	} {
		_, err := c.Reconfig(t.Context(), tc.change, tc.version)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
}
