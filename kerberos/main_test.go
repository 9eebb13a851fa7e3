package kerberos_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

// TestMain starts a KDC for all tests. Without one they are skipped, and fail where ZK_TEST or CI
// say that nothing may be skipped.
func TestMain(m *testing.M) {
	required := os.Getenv("ZK_TEST") == "required" || os.Getenv("CI") == "true"
	r, err := startRealm()
	switch {
	case errors.Is(err, errNoKDC) && !required:
		fmt.Fprintln(os.Stderr, "kerberos: *** TESTS ARE SKIPPED, NOT TESTED:", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, "kerberos:", err)
		os.Exit(1)
	}
	theRealm = r
	zktest.Main(m, zktest.WithShared(serverOptions(r)...), zktest.WithLeakCheck())
}

// serverOptions make a server authenticate by Kerberos.
func serverOptions(r *realm) []zktest.Option {
	if r == nil {
		return nil
	}
	jaas := fmt.Sprintf(`Server {
	com.sun.security.auth.module.Krb5LoginModule required isInitiator=false useKeyTab=true
	keyTab=%q storeKey=true useTicketCache=false principal="zookeeper/localhost@%s";
};
`, r.keytab("zookeeper/localhost"), realmName)
	if err := os.WriteFile(r.file("jaas.conf"), []byte(jaas), 0o600); err != nil {
		panic(err)
	}
	return []zktest.Option{
		zktest.WithLogLevel("ERROR"), // each refusal is two pages of WARN
		zktest.WithSetting("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		zktest.WithSetting("sessionRequireClientSASLAuth", "true"),
		zktest.WithJVMFlags("-Djava.security.auth.login.config="+r.file("jaas.conf"), "-Djava.security.krb5.conf="+r.file("krb5.conf")),
	}
}
