package kerberos_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
)

const (
	realmName = "DOCENT.TEST"
	password  = "pa55-of-alice"
)

// errNoKDC is returned where no KDC is installed.
var errNoKDC = errors.New("no krb5kdc, kadmin.local, kdb5_util or kinit: scripts/setup-kdc installs them")

// A realm is a KDC with the principals that the tests use, and their files. It listens on the loopback
// interface only and needs no privileges.
type realm struct {
	dir   string
	port  int
	stdin io.Closer // of the KDC's keeper; a collected one would end the KDC
}

// theRealm is nil without a KDC. TestMain sets it.
var theRealm *realm

// keeper runs the KDC until its standard input ends, which it does with the test's process,
// however that ends, and then removes the realm's files. Signals to the test's group do not end it.
const keeper = `trap '' INT TERM HUP
"$0" -n -r "$2" & pid=$!
read _
kill $pid; wait $pid; rm -rf "$1"`

// startRealm makes a realm and starts its KDC.
func startRealm() (*realm, error) {
	kdc, err := tools()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "docent-kerberos-")
	if err != nil {
		return nil, err
	}
	ports, err := freeport.Draw(1)
	if err != nil {
		return nil, err
	}
	r := &realm{dir: dir, port: ports[0]}
	if err := r.fill(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cmd := r.command("sh", "-c", keeper, kdc, dir, realmName)
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		conn, err := net.DialTimeout("tcp", r.addr(), time.Second)
		if err == nil {
			return r, conn.Close()
		}
		<-time.After(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("the KDC does not answer at %s", r.addr())
}

// tools returns the path of the KDC. Debian has it where only root looks.
func tools() (kdc string, err error) {
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin"); err != nil {
		return "", err
	}
	for _, tool := range []string{"krb5kdc", "kadmin.local", "kdb5_util", "kinit"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", errNoKDC
		}
	}
	return exec.LookPath("krb5kdc")
}

func (r *realm) addr() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

func (r *realm) file(name string) string { return filepath.Join(r.dir, name) }

func (r *realm) keytab(principal string) string {
	return r.file(strings.ReplaceAll(principal, "/", "-") + ".keytab")
}

func (r *realm) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+r.file("krb5.conf"), "KRB5_KDC_PROFILE="+r.file("kdc.conf"))
	return cmd
}

func (r *realm) run(stdin, name string, args ...string) error {
	cmd := r.command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// admin changes the realm's database.
func (r *realm) admin(lines ...string) error {
	return r.run(strings.Join(lines, "\n")+"\n", "kadmin.local", "-r", realmName)
}

// fill makes the realm's files. The password of the database's master key needs no secrecy,
// because no other user can reach the directory.
func (r *realm) fill() error {
	kdcConf := fmt.Sprintf(`[kdcdefaults]
	kdc_listen = 127.0.0.1:%[2]d
	kdc_tcp_listen = 127.0.0.1:%[2]d
[realms]
	%[1]s = {
		database_name = %[3]s/principal
		key_stash_file = %[3]s/stash
		acl_file = %[3]s/acl
		supported_enctypes = aes256-cts:normal aes128-cts:normal aes256-sha2:normal aes128-sha2:normal
	}
[logging]
	kdc = FILE:%[3]s/kdc.log
	admin_server = FILE:%[3]s/kadmin.log
`, realmName, r.port, r.dir)
	if err := os.WriteFile(r.file("kdc.conf"), []byte(kdcConf), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(r.file("krb5.conf"), []byte(clientConf(r.addr())), 0o600); err != nil {
		return err
	}
	if err := r.run("", "kdb5_util", "create", "-s", "-r", realmName, "-P", "of-the-database"); err != nil {
		return err
	}
	lines := []string{"addprinc +requires_preauth -pw " + password + " alice", "addprinc -pw of-carol carol"}
	for name, flag := range map[string]string{
		"zookeeper/localhost": "", // else it refuses the tickets of carol, who was asked for no proof
		"app":                 "+requires_preauth",
		"app/host":            "+requires_preauth",
		"rekeyed":             "+requires_preauth",
	} {
		lines = append(lines, "addprinc "+flag+" -randkey "+name, `ktadd -k "`+r.keytab(name)+`" -norandkey `+name)
	}
	return r.admin(lines...)
}

// clientConf returns a krb5.conf with the KDCs at addrs, and more lines of libdefaults.
func clientConf(addrs string, more ...string) string {
	var kdcs strings.Builder
	for addr := range strings.FieldsSeq(addrs) {
		fmt.Fprintf(&kdcs, "\t\tkdc = %s\n", addr)
	}
	return fmt.Sprintf(`[libdefaults]
	default_realm = %[1]s
	dns_lookup_realm = false
	dns_lookup_kdc = false
	rdns = false
	%[3]s
[realms]
	%[1]s = {
%[2]s	}
`, realmName, kdcs.String(), strings.Join(more, "\n\t"))
}

// needRealm returns the realm, or skips the test.
func needRealm(t *testing.T) *realm {
	t.Helper()
	if theRealm == nil {
		t.Skip("SKIPPED, NOT TESTED: " + errNoKDC.Error())
	}
	return theRealm
}

// config writes a krb5.conf of the test's own and returns its path.
func config(t *testing.T, addrs string, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "krb5.conf")
	must.OK(t, os.WriteFile(path, []byte(clientConf(addrs, more...)), 0o600))
	return path
}
