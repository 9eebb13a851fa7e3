// Package peers finds the other libraries that docent is tested and measured with,
// where scripts/setup-interop puts them, and has what tests do to processes.
package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrMissing says that a library is not installed where it is looked for.
var ErrMissing = errors.New("not installed")

// debianJars is where Debian's packages put their jars.
const debianJars = "/usr/share/java"

// Curator returns the jars of Curator's class path. It is found as zktest finds
// ZooKeeper: at CURATOR_HOME, a directory of jars that has all that Curator needs, or
// as Debian's package, whose manifest names what it needs.
func Curator() ([]string, error) { return jars("recipes") }

// CuratorDiscovery returns the jars of the class path of Curator's x-discovery, which are found as
// [Curator]'s are. It needs the recipes' jar, too, which Debian's manifest does not name.
func CuratorDiscovery() ([]string, error) { return jars("x-discovery", "recipes") }

// jars returns the jars of Curator's modules.
func jars(modules ...string) ([]string, error) {
	if home := os.Getenv("CURATOR_HOME"); home != "" {
		return []string{filepath.Join(home, "*")}, nil
	}
	var found []string
	for _, module := range modules {
		jar := filepath.Join(debianJars, "curator-"+module+".jar")
		if _, err := os.Stat(jar); err != nil {
			pkg := strings.TrimPrefix(module, "x-")
			return nil, fmt.Errorf("Curator: %w: no %s (Debian: apt-get install libcurator-%s-java) and no CURATOR_HOME", ErrMissing, jar, pkg)
		}
		found = append(found, jar)
	}
	return append(found, filepath.Join(debianJars, "slf4j-simple.jar")), nil
}

// CuratorVersion returns the version in the name of Curator's jar: its manifest
// has none. It is "unknown" where no jar is named so.
func CuratorVersion() string {
	dir := debianJars
	if home := os.Getenv("CURATOR_HOME"); home != "" {
		dir = home
	}
	const before, after = "curator-recipes-", ".jar"
	jars, err := filepath.Glob(filepath.Join(dir, before+"[0-9]*"+after))
	if err != nil || len(jars) == 0 {
		return "unknown"
	}
	name := filepath.Base(jars[0])
	return name[len(before) : len(name)-len(after)]
}

// Java returns the commands that run and that compile Java.
func Java() (java, javac string, err error) {
	java, javac = "java", "javac"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java, javac = filepath.Join(home, "bin", java), filepath.Join(home, "bin", javac)
	}
	for _, program := range []string{java, javac} {
		if _, err := exec.LookPath(program); err != nil {
			return "", "", fmt.Errorf("Curator: %w: no %s (Debian: apt-get install default-jdk-headless)", ErrMissing, program)
		}
	}
	return java, javac, nil
}

// Compile compiles a driver of Curator into dir, and returns the command that runs its class.
func Compile(ctx context.Context, dir, class string, source []byte, options ...string) ([]string, error) {
	java, javac, err := Java()
	if err != nil {
		return nil, err
	}
	jars, err := Curator()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, class+".java")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return nil, err
	}
	path := strings.Join(append(jars, dir), string(os.PathListSeparator))
	if out, err := exec.CommandContext(ctx, javac, "-cp", path, "-d", dir, file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w: %s", err, out)
	}
	return slices.Concat([]string{java}, options, []string{"-cp", path, class}), nil
}

// Kazoo returns the command of a Python that has kazoo. The system's has it from
// Debian's package, and may not be the first in PATH.
func Kazoo(ctx context.Context) (python string, err error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", "import kazoo").Run() == nil {
			return python, nil
		}
	}
	return "", fmt.Errorf("kazoo: %w: no python3 imports it (Debian: apt-get install python3-kazoo)", ErrMissing)
}
