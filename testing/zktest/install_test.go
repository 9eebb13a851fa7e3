package zktest_test

import (
	"archive/zip"
	"errors"
	"net/url"
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

func TestJarsOfAPackageAreThoseThatItsManifestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jar := filepath.Join(dir, "zookeeper.jar")
	absolute := touch(t, t.TempDir(), "absolute.jar")
	entry := (&url.URL{Path: absolute}).EscapedPath() // the folder of temporary files may have any name
	writeManifest(t, jar, "Manifest-Version: 1.0\r\nClass-Path: beside.jar missing.jar "+entry[:9]+"\r\n "+entry[9:]+"\r\n")
	want := []string{
		jar,
		touch(t, dir, "beside.jar"),
		absolute,
		touch(t, dir, "slf4j-simple.jar"),
	}
	got, err := zktest.LocateJars("", jar)
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
		{"a package that is no archive", func() error { _, err := zktest.LocateJars("", dir+"/lib/zookeeper-jute-3.9.2.jar"); return err }, false},
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

func TestManifestAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"alone", "Class-Path: a.jar b.jar\n", "a.jar b.jar"},
		{"continued within a word", "Class-Path: a.j\n ar b.jar\nOther: x\n", "a.jar b.jar"},
		{"continued with a space of its own", "Class-Path: a.jar\n  b.jar\n", "a.jar b.jar"},
		{"with Windows' line ends", "X: y\r\nClass-Path: a.j\r\n ar\r\n", "a.jar"},
		{"in other letters", "class-path: a.jar\n", "a.jar"},
		{"in another section", "X: y\n\nName: z\nClass-Path: a.jar\n", ""},
		{"absent", "X: y\n", ""},
		{"in nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := zktest.ManifestAttribute(c.text, "Class-Path"); got != c.want {
				t.Errorf("Class-Path of %q = %q; want %q", c.text, got, c.want)
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

func writeManifest(t testing.TB, jar, text string) {
	t.Helper()
	file := must.Get(os.Create(jar))(t)
	archive := zip.NewWriter(file)
	entry := must.Get(archive.Create("META-INF/MANIFEST.MF"))(t)
	must.Get(entry.Write([]byte(text)))(t)
	must.OK(t, errors.Join(archive.Close(), file.Close()))
}
