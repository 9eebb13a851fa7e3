package framework_test

import (
	"net"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/check"
)

// FuzzConnectString parses any text without a panic. If it accepts a text, the text names servers
// that can be dialled, and means the same when it is written out and read again.
func FuzzConnectString(f *testing.F) {
	for _, s := range []string{"h1:2181,h2:2181/chroot", "[::1]:2181", "[fe80::1%eth0]", " a , b:1", "a:b@c", "/", ",", "h/", "[[]]:1", "h:00001", "]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, chroot, err := framework.ParseConnectString(s)
		if err != nil {
			check.That(t, len(servers) <= 0 && chroot == "", "%q: %v, %q with error %v", s, servers, chroot, err)
			return
		}
		check.That(t, (chroot == "" || framework.ValidatePath(chroot) == nil) && chroot != "/" && len(servers) != 0,
			"%q: servers %q, chroot %q", s, servers, chroot)
		for _, server := range servers {
			if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
				t.Errorf("%q: server %q", s, server)
			}
		}
		again, chroot2, err := framework.ParseConnectString(strings.Join(servers, ",") + chroot)
		check.That(t, err == nil && strings.Join(again, " ") == strings.Join(servers, " ") && chroot2 == chroot,
			"%q: %q%s, written out and read again %q%s, %v", s, servers, chroot, again, chroot2, err)
	})
}

// FuzzPath checks what is held of paths whatever they are.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"", "/", "/a", "/a/b", "a", "//", "/a/", "/.", "/../a", "/a\x00", "/a\x7f", "/\ue000", "/\uf8ff", "/\xff", "/…", "/ a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		err := framework.ValidatePath(path)
		if err != nil {
			check.Is(t, err, framework.ErrInvalidPath, "%q", path)
			return
		}
		dir, name := framework.SplitPath(path)
		check.That(t, framework.ValidatePath(dir) == nil && !strings.Contains(name, "/"),
			"%q splits into %q and %q", path, dir, name)
		if path != "/" && framework.JoinPath(dir, name) != path {
			t.Errorf("%q splits into %q and %q, which join to %q", path, dir, name, framework.JoinPath(dir, name))
		}
		for element := range strings.SplitSeq(path[1:], "/") {
			check.That(t, path == "/" || element != "" && element != "." && element != "..",
				"%q was accepted", path)
		}
	})
}
