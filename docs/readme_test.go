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

// The Chinese README has the same Go, headings, tables and links, to Chinese pages where
// they exist.
func TestTheChineseREADMESaysTheSame(t *testing.T) {
	t.Parallel()
	english, chinese := read(t, "README.md"), read(t, "README.zh-CN.md")
	if !slices.Equal(english.headings(), chinese.headings()) {
		t.Errorf("levels of headings %v, and in Chinese %v", english.headings(), chinese.headings())
	}
	if len(english.blocks) != len(chinese.blocks) {
		t.Fatalf("%d blocks, and in Chinese %d", len(english.blocks), len(chinese.blocks))
	}
	for i, b := range english.blocks {
		c := chinese.blocks[i]
		if b.language != c.language || b.language == "go" && b.text != c.text || !slices.Equal(commands(b), commands(c)) {
			t.Errorf("block %d: %s %q, and in Chinese %s %q", i, b.language, b.text, c.language, c.text)
		}
	}
	rows := func(p page) int { return strings.Count(p.prose, "\n|") }
	if rows(english) != rows(chinese) {
		t.Errorf("%d rows of tables, and in Chinese %d", rows(english), rows(chinese))
	}
	links := func(p page) []string {
		var all []string
		for _, match := range target.FindAllStringSubmatch(p.prose, -1) {
			if !strings.HasPrefix(match[1], "README") {
				all = append(all, strings.Replace(match[1], ".zh-CN.md", ".md", 1))
			}
		}
		slices.Sort(all)
		return all
	}
	if !slices.Equal(links(english), links(chinese)) {
		t.Errorf("links\n%v\nand in Chinese\n%v", links(english), links(chinese))
	}
}

// The program of the README, against a server: it waits for its turn, writes the
// report, and leaves nothing behind.
func TestTheProgramOfTheREADME(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t)
	addr := must.Get(server.Listen("127.0.0.1:0"))(t)
	holder := lockReport(t, addr)
	program := exec.CommandContext(t.Context(), buildProgram(t, addr))
	var out strings.Builder
	program.Stdout, program.Stderr = &out, &out
	must.OK(t, program.Start())
	awaitContenders(t, server, 2)
	if strings.Contains(out.String(), "report") {
		t.Error("the program writes the report while somebody else has the lock")
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := program.Wait(); err != nil || !strings.Contains(out.String(), "writing the report") {
		t.Errorf("the program: %v\n%s", err, &out)
	}
	awaitContenders(t, server, 0)
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
