package kerberos_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/kerberos"
)

func TestNew_names_each_faulty_argument(t *testing.T) {
	t.Parallel()
	conf := func(more ...string) kerberos.Option {
		return kerberos.WithConfigFile(config(t, "127.0.0.1:88", more...))
	}
	noRealm := filepath.Join(t.TempDir(), "krb5.conf")
	writeFile(t, noRealm, []byte("[libdefaults]\n"))
	long := filepath.Join(t.TempDir(), "long")
	writeFile(t, long, make([]byte, 1<<20+1))
	ok := kerberos.Password("alice", password)
	for name, tc := range map[string]struct {
		credential kerberos.Credential
		opts       []kerberos.Option
		want       []string
	}{
		"nothing":            {nil, nil, []string{"credential: must not be nil"}},
		"no password":        {kerberos.Password("alice", ""), nil, []string{"password: must not be empty"}},
		"no name":            {kerberos.Password("@"+realmName, password), nil, []string{`principal "@DOCENT.TEST"`}},
		"two realms":         {kerberos.Password("alice@A@B", password), nil, []string{`principal "alice@A@B"`}},
		"no realm":           {ok, []kerberos.Option{kerberos.WithConfigFile(noRealm)}, []string{`principal "alice"`, "default_realm"}},
		"no keytab":          {kerberos.Keytab("app", "/no/such"), nil, []string{"keytab", "/no/such"}},
		"a long keytab":      {kerberos.Keytab("app", long), nil, []string{long, "too long"}},
		"no cache":           {kerberos.CredentialCache("/no/such"), nil, []string{"cache", "/no/such"}},
		"no configuration":   {ok, []kerberos.Option{kerberos.WithConfigFile("/no/such")}, []string{"configuration", "/no/such"}},
		"old encryption":     {ok, []kerberos.Option{conf("default_tgs_enctypes = arcfour-hmac-md5")}, []string{"default_tgs_enctypes"}},
		"nil for an option":  {ok, []kerberos.Option{nil}, []string{"option 1: must not be nil"}},
		"nil for all":        {nil, []kerberos.Option{nil}, []string{"credential: must not be nil", "option 1: must not be nil"}},
		"a line break":       {ok, []kerberos.Option{kerberos.WithServiceName("a\nb/")}, []string{`service name "a\nb/"`}},
		"no service name":    {ok, []kerberos.Option{kerberos.WithServiceName("")}, []string{`service name ""`}},
		"two parts":          {ok, []kerberos.Option{kerberos.WithServiceName("a/b")}, []string{`service name "a/b"`}},
		"a bare principal":   {ok, []kerberos.Option{kerberos.WithServicePrincipal("zk")}, []string{`service principal "zk"`}},
		"another realm":      {ok, []kerberos.Option{kerberos.WithServicePrincipal("zk/host@OTHER")}, []string{`service principal "zk/host@OTHER"`}},
		"two ways to a name": {ok, []kerberos.Option{kerberos.WithServicePrincipal("zk/host"), kerberos.WithCanonicalHost()}, []string{"WithCanonicalHost"}},
		"two faults":         {kerberos.Password("alice", ""), []kerberos.Option{kerberos.WithServiceName("")}, []string{"password", "service name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := kerberos.New(tc.credential, append([]kerberos.Option{conf()}, tc.opts...)...)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), password) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestNew_takes_the_file_that_the_environment_names(t *testing.T) {
	path := config(t, "127.0.0.1:88")
	t.Setenv("KRB5_CONFIG", path+":/etc/krb5.conf")
	must.Get(kerberos.New(kerberos.Password("alice", password)))(t)
	t.Setenv("KRB5_CONFIG", "/no/such")
	if _, err := kerberos.New(kerberos.Password("alice", password)); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("%v, want it to name the file", err)
	}
}

// Password shows in no form of printing.
func TestCredentials_show_no_secret(t *testing.T) {
	t.Parallel()
	var rec record
	m := mechanism(t, "127.0.0.1:88", kerberos.Password("alice", password))
	rec.add(kerberos.Password("alice", password), m, *m)
	rec.check(t, password)
}
