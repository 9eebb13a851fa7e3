package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// The program of the README, against a server: it waits for its turn, writes the
// report, and leaves nothing behind.
func TestTheProgramOfTheREADME(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t)
	addr := must.Get(server.Listen("127.0.0.1:0"))(t)
	holder := lockReport(t, addr)
	binary := buildProgram(t, addr)

	interrupted, said := startProgram(t, binary)
	awaitContenders(t, server, 2)
	must.OK(t, interrupted.Process.Signal(os.Interrupt))
	if err := interrupted.Wait(); err == nil || strings.Contains(said(), "writing") {
		t.Errorf("the program after an interrupt: %v\n%s", err, said())
	}
	awaitContenders(t, server, 1)

	program, said := startProgram(t, binary)
	zktest.Eventually(t, time.Minute, "the program to wait", func() bool {
		return strings.Contains(said(), "contenders ahead: 1")
	})
	if strings.Contains(said(), "writing") {
		t.Error("the program writes the report while another client has the lock")
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("the program: %v", err)
	}
	for _, want := range []string{"ZooKeeper: Connected", "contenders ahead: 0", "writing the report"} {
		if !strings.Contains(said(), want) {
			t.Errorf("the program prints no %q:\n%s", want, said())
		}
	}
	awaitContenders(t, server, 0)
}

// startProgram starts the program. said returns what it has printed.
func startProgram(t *testing.T, binary string) (program *exec.Cmd, said func() string) {
	t.Helper()
	log := must.Get(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	t.Cleanup(func() { _ = log.Close() })
	program = exec.CommandContext(t.Context(), binary)
	program.Stderr = log
	must.OK(t, program.Start())
	return program, func() string { return string(must.Get(os.ReadFile(log.Name()))(t)) }
}

// buildProgram builds the README's program for a server at addr.
func buildProgram(t *testing.T, addr string) string {
	t.Helper()
	readme := read(t, "README.md")
	i := slices.IndexFunc(readme.blocks, func(b block) bool { return strings.HasPrefix(b.text, "package main") })
	if i < 0 || !strings.Contains(readme.blocks[i].text, "localhost:2181") {
		t.Fatal("the README has no program that connects to localhost:2181")
	}
	dir := t.TempDir()
	source, overlay, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "program")
	write(t, source, []byte(strings.Replace(readme.blocks[i].text, "localhost:2181", addr, 1)))
	here := must.Get(filepath.Abs("."))(t)
	replace := must.Get(json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "program", "main.go"): source}}))(t)
	write(t, overlay, replace)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "./program").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(path, data, 0o600))
}

// lockReport has another client hold the lock of the README's program.
func lockReport(t *testing.T, addr string) *lock.Lease {
	t.Helper()
	client := must.Get(framework.NewClient(addr))(t)
	t.Cleanup(func() { _ = client.Close() })
	mutex := must.Get(lock.NewMutex(client, "/locks/report"))(t)
	lease := must.Get(mutex.Lock(t.Context()))(t)
	return lease
}

// awaitContenders waits until the lock has so many.
func awaitContenders(t *testing.T, server *zkserver.Server, want int) {
	t.Helper()
	zktest.Eventually(t, time.Minute, "the contenders to come or go", func() bool {
		got := 0
		for _, path := range server.Paths() {
			if strings.HasPrefix(path, "/locks/report/") {
				got++
			}
		}
		return got == want
	})
}
