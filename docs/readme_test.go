package docs_test

import (
	"encoding/json"
	"fmt"
	"net"
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

// The program of the README, against a server: it says which process it waits for, writes the report in
// its turn, stops at a signal, and leaves nothing behind. If it is killed while it writes, the next one
// says so.
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
	awaitText(t, said, "still waiting for the lock")
	if host, _ := os.Hostname(); !strings.Contains(said(), fmt.Sprintf("process=\"%d on %s\"", os.Getpid(), host)) {
		t.Errorf("the program does not say which process it waits for:\n%s", said())
	}
	if strings.Contains(said(), "writing") {
		t.Error("the program writes the report while another client has the lock")
	}
	must.OK(t, holder.Release(t.Context()))
	if err := program.Wait(); err != nil || !strings.Contains(said(), "writing the report") {
		t.Errorf("the program: %v\n%s", err, said())
	}
	awaitContenders(t, server, 0)

	killed, said := startProgram(t, binary)
	awaitText(t, said, "writing the report")
	must.OK(t, killed.Process.Kill())
	_ = killed.Wait() // it was killed
	next, said := startProgram(t, binary)
	awaitText(t, said, fmt.Sprintf("process=\"%d on ", killed.Process.Pid))
	must.OK(t, next.Process.Signal(os.Interrupt))
	if err := next.Wait(); err == nil || strings.Contains(said(), "writing") {
		t.Errorf("the program after an interrupt: %v\n%s", err, said())
	}
}

// The program of the README at an address where no server is: it says so at once, and stops at a signal.
func TestTheProgramOfTheREADMEWithoutAServer(t *testing.T) {
	t.Parallel()
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := closed.Addr().String()
	must.OK(t, closed.Close())
	program, said := startProgram(t, buildProgram(t, addr))
	awaitText(t, said, "connection refused")
	must.OK(t, program.Process.Signal(os.Interrupt))
	if err := program.Wait(); err == nil || !strings.Contains(said(), "lock /locks/report: wait ended: interrupt") {
		t.Errorf("the program after an interrupt: %v\n%s", err, said())
	}
}

// awaitText waits until the program has printed the text.
func awaitText(t *testing.T, said func() string, text string) {
	t.Helper()
	zktest.Eventually(t, time.Minute, "the program to print "+text, func() bool { return strings.Contains(said(), text) })
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
