package main

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

//go:embed Peer.java
var peer []byte

// command returns where a program of the JDK is looked for.
func command(program string) string {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", program)
	}
	return program
}

// classpath returns where Curator is, with all that it needs: "" for nowhere.
func classpath() string {
	if home := os.Getenv("CURATOR_HOME"); home != "" {
		return filepath.Join(home, "*")
	}
	const debian = "/usr/share/java/curator-recipes.jar" // its manifest names the others
	if _, err := os.Stat(debian); err != nil {
		return ""
	}
	return debian + string(os.PathListSeparator) + "/usr/share/java/slf4j-simple.jar"
}

// runCurator runs the Java side.
func runCurator(ctx context.Context, connect string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "curator-interop")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "Peer.java")
	if err := os.WriteFile(source, peer, 0o600); err != nil {
		return err
	}
	java := exec.CommandContext(ctx, command("java"), "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=ERROR",
		"-cp", classpath(), source, connect, lockPath, counter, strconv.Itoa(rounds))
	java.Stdout, java.Stderr = out, os.Stderr
	return java.Run()
}
