package kerberos_test

import (
	"context"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/kerberos"
	"github.com/docent-go/docent/testing/zktest"
)

// docs/security.md has the fragment of secure.
func TestSecurityPage_Kerberos(t *testing.T) {
	r := needRealm(t)
	t.Setenv("KRB5_CONFIG", config(t, r.addr()))
	ids, err := secure(t.Context(), byName(t, zktest.Shared(t).Addr()), "app@"+realmName, r.keytab("app"))
	if want := (framework.Identity{Scheme: "sasl", ID: "app@" + realmName}); err != nil || !slices.Contains(ids, want) {
		t.Errorf("the server takes the client for %v, %v; want %v", ids, err, want)
	}
}

func secure(ctx context.Context, servers, principal, keytab string) ([]framework.Identity, error) {
	var client *framework.Client
	err := func() (err error) {
		// principal is such as "app@EXAMPLE.COM", keytab such as "/etc/myservice/app.keytab".
		mechanism, err := kerberos.New(kerberos.Keytab(principal, keytab))
		if err != nil {
			return err
		}
		client, err = framework.NewClient(servers, framework.WithSASL(mechanism))
		return err
	}()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.WhoAmI(ctx)
}
