package zktest_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestJarsOfAReleaseAreAllInItsLib(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	want := []string{
		touch(t, home, "lib/logback-core.jar"),
		touch(t, home, "lib/zookeeper-3.9.2.jar"),
		touch(t, home, "lib/zookeeper-jute-3.9.2.jar"),
	}
	touch(t, home, "lib/README")
	got, err := zktest.LocateJars(home, "")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("LocateJars() = %q, %v; want %q", got, err, want)
	}
}

func TestInstall_reports_missing_parts(t *testing.T) {
	dir := t.TempDir()
	touch(t, dir, "lib/zookeeper-jute-3.9.2.jar") // not enough
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		name    string
		locate  func() error
		missing bool
	}{
		{"no package", func() error { _, err := zktest.LocateJars("", dir+"/zookeeper.jar"); return err }, true},
		{"a release without ZooKeeper's own jar", func() error { _, err := zktest.LocateJars(dir, ""); return err }, false},
		{"no java in PATH", func() error { _, err := zktest.LocateJava(""); return err }, true},
		{"no java in JAVA_HOME", func() error { _, err := zktest.LocateJava(dir); return err }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.locate()
			if err == nil || errors.Is(err, zktest.ErrMissing) != c.missing {
				t.Errorf("error %v; want one, and ErrMissing: %v", err, c.missing)
			}
		})
	}
}

func touch(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.OK(t, os.WriteFile(path, nil, 0o600))
	return path
}
