package zkserver_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// Clients of other projects work with the server. Each peer's program prints what it sees; that is
// compared with the expectation, which is in testdata, too.
func TestPeers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("PEERS NOT TESTED: -short")
	}
	tests := []struct {
		name    string
		needs   []string // files, and Debian's packages that have them
		command func(addr string) []string
		stdin   string
		want    string
		noise   string // lines to ignore
	}{
		{
			name:    "python3-kazoo",
			needs:   []string{"/usr/bin/python3", "/usr/lib/python3/dist-packages/kazoo/client.py"},
			command: func(addr string) []string { return []string{"/usr/bin/python3", "testdata/kazoo_peer.py", addr} },
			want:    "testdata/kazoo_peer.txt",
		},
		{
			name:  "zookeeper",
			needs: []string{"/usr/share/zookeeper/bin/zkCli.sh"},
			command: func(addr string) []string {
				return []string{"/usr/share/zookeeper/bin/zkCli.sh", "-server", addr}
			},
			stdin: "testdata/zkcli_peer.in",
			want:  "testdata/zkcli_peer.txt",
			// Logs, the welcome, events (which come when they come) and stats.
			noise: `INFO|WARN|log4j|SLF4J|^\s*at |^$|^Connecting|^Welcome|^JLine|^WATCHER|^WatchedEvent|^[a-zA-Z]+ = |^Auth scheme`,
		},
		{
			name:  "libcurator-recipes-java",
			needs: []string{"/usr/share/java/curator-recipes.jar", "/usr/share/java/zookeeper.jar", "/usr/share/java/guava.jar"},
			command: func(addr string) []string {
				return []string{"java", "-cp", "/usr/share/java/*", "testdata/CuratorPeer.java", addr}
			},
			want:  "testdata/curator_peer.txt",
			noise: `INFO|WARN|log4j|SLF4J`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, file := range tt.needs {
				if _, err := os.Stat(file); err != nil {
					t.Skipf("PEER NOT TESTED: no %s: apt-get install %s", filepath.Base(file), tt.name)
				}
			}
			addr := must.Get(zkserver.Run(t).Listen("127.0.0.1:0"))(t)
			want := must.Get(os.ReadFile(tt.want))(t)
			got := runPeer(t, tt.command(addr), tt.stdin, tt.noise)
			if got != string(want) {
				t.Errorf("the peer saw\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// runPeer runs a program and returns what it prints, without the noise.
func runPeer(t *testing.T, command []string, stdin, noise string) string {
	t.Helper()
	// A peer that hangs is killed. A JVM that compiles its program on a busy machine takes over a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	if stdin != "" {
		script := must.Get(os.ReadFile(stdin))(t)
		cmd.Stdin = bytes.NewReader(script)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command[0], err, out)
	}
	ignored := regexp.MustCompile(noise)
	var lines strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n"), "\n") {
		if noise == "" || !ignored.MatchString(line) {
			lines.WriteString(line + "\n")
		}
	}
	return lines.String()
}
