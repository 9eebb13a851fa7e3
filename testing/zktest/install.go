package zktest

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/zkversion"
)

// debianJar is where Debian's package libzookeeper-java puts ZooKeeper.
const debianJar = "/usr/share/java/zookeeper.jar"

// homeVariable names the environment variable that says where a release of ZooKeeper is. Without it,
// the installed package is used.
const homeVariable = "ZOOKEEPER_HOME"

// An install is what it takes to run ZooKeeper.
type install struct {
	java      string
	classPath []string
}

// locate finds ZooKeeper and Java. Its error is [ErrMissing] when they are not
// where one would look, and another when the environment points elsewhere.
func locate() (install, error) { return locateAt(os.Getenv(homeVariable)) }

// locateAt is locate for the release in the directory home, or the package if home is "".
func locateAt(home string) (install, error) {
	java, err := locateJava(os.Getenv("JAVA_HOME"))
	if err != nil {
		return install{}, err
	}
	jars, err := locateJars(home, debianJar)
	if err != nil {
		return install{}, err
	}
	return install{java: java, classPath: jars}, nil
}

func locateJava(home string) (string, error) {
	if home == "" {
		java, err := exec.LookPath("java")
		if err != nil {
			return "", fmt.Errorf("%w: no java in PATH; install one (Debian: apt-get install default-jre-headless) or set JAVA_HOME", ErrMissing)
		}
		return java, nil
	}
	java := filepath.Join(home, "bin", "java")
	if _, err := os.Stat(java); err != nil {
		return "", fmt.Errorf("zktest: JAVA_HOME=%s: %w", home, err)
	}
	return java, nil
}

func locateJars(home, packaged string) ([]string, error) {
	if home == "" {
		return packagedJars(packaged)
	}
	jars, err := filepath.Glob(filepath.Join(home, "lib", "*.jar"))
	if err != nil {
		return nil, fmt.Errorf("zktest: ZOOKEEPER_HOME=%s: %w", home, err)
	}
	for _, jar := range jars {
		if ok, _ := filepath.Match("zookeeper-[0-9]*.jar", filepath.Base(jar)); ok {
			return jars, nil
		}
	}
	return nil, fmt.Errorf("zktest: ZOOKEEPER_HOME=%s: no lib/zookeeper-*.jar there", home)
}

// Version returns the version of the ZooKeeper that the package's servers are, such as "3.9.6". If the
// distributor has fixed CVE-2024-23944 in an older version, as Debian has, it is "3.8.0+deb12u2".
// The error is [ErrMissing] if there is no ZooKeeper.
func Version() (string, error) {
	in, err := locate()
	if err != nil {
		return "", err
	}
	return in.version()
}

func (in install) version() (string, error) {
	for _, jar := range in.classPath {
		all, err := filepath.Glob(filepath.Join(filepath.Dir(jar), "zookeeper-[0-9]*.jar"))
		if err != nil || len(all) == 0 {
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(all[0]), "zookeeper-"), ".jar")
		v, err := zkversion.Parse(text)
		if err != nil {
			return "", fmt.Errorf("zktest: %s: %w", all[0], err)
		}
		if !v.Has(zkversion.FiltersEvents) {
			v.Patched, err = hasFile(all[0], "org/apache/zookeeper/server/ServerWatcher.class")
		}
		return v.String(), err
	}
	return "", fmt.Errorf("zktest: no zookeeper-*.jar beside %v", in.classPath)
}

// packagedJars lists a distribution's jar, whose manifest names all that it needs but a backend of slf4j, to which
// ZooKeeper logs. So packagedJars adds slf4j's simple one from the same directory.
func packagedJars(jar string) ([]string, error) {
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("%w: no ZooKeeper at %s; install one (Debian: apt-get install zookeeper) or set ZOOKEEPER_HOME", ErrMissing, jar)
	}
	return []string{jar, filepath.Join(filepath.Dir(jar), "slf4j-simple.jar")}, nil
}

// hasFile reports whether the jar holds the file.
func hasFile(jar, name string) (bool, error) {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return false, err
	}
	defer archive.Close()
	return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name }), nil
}
