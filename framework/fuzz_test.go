package framework_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
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
			if len(servers) > 0 || chroot != "" {
				t.Errorf("%q: %v, %q with error %v", s, servers, chroot, err)
			}
			return
		}
		if chroot != "" && framework.ValidatePath(chroot) != nil || chroot == "/" || len(servers) == 0 {
			t.Errorf("%q: servers %q, chroot %q", s, servers, chroot)
		}
		for _, server := range servers {
			if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
				t.Errorf("%q: server %q", s, server)
			}
		}
		again, chroot2, err := framework.ParseConnectString(strings.Join(servers, ",") + chroot)
		if err != nil || strings.Join(again, " ") != strings.Join(servers, " ") || chroot2 != chroot {
			t.Errorf("%q: %q%s, written out and read again %q%s, %v", s, servers, chroot, again, chroot2, err)
		}
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
			if !errors.Is(err, framework.ErrInvalidPath) {
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		dir, name := zkpath.Split(path)
		if framework.ValidatePath(dir) != nil || strings.Contains(name, "/") {
			t.Errorf("%q splits into %q and %q", path, dir, name)
		}
		if path != "/" && zkpath.Join(dir, name) != path {
			t.Errorf("%q splits into %q and %q, which join to %q", path, dir, name, zkpath.Join(dir, name))
		}
		for element := range strings.SplitSeq(path[1:], "/") {
			if path != "/" && (element == "" || element == "." || element == "..") {
				t.Errorf("%q was accepted", path)
			}
		}
	})
}
