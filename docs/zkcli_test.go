package docs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// docs/operating.md finds a lock's holder by zkCli.sh: ls of the directory, get -s of the child.
func TestTheCommandsOfZkCli(t *testing.T) {
	t.Parallel()
	zkCli, home := "/usr/share/zookeeper/bin/zkCli.sh", os.Getenv("ZOOKEEPER_HOME") // Debian's
	if home != "" {
		zkCli = filepath.Join(home, "bin", "zkCli.sh") // a release's; a directory of jars has none
	}
	if _, err := os.Stat(zkCli); err != nil {
		if os.Getenv("ZK_TEST") == "required" && home == "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOT TESTED: zkCli.sh is missing (ZOOKEEPER_HOME=%q): %v", home, err)
	}
	addr := zktest.Shared(t).Addr()
	client, err := framework.NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	path := fmt.Sprintf("/locks/zkcli-%d", os.Getpid())
	mutex, err := lock.NewMutex(client, path)
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Do(t.Context(), mutex, func(ctx context.Context, l *lock.Lease) error {
		cli := exec.CommandContext(ctx, zkCli, "-server", addr)
		cli.Stdin = strings.NewReader("ls " + path + "\nget -s " + l.Node() + "\nquit\n")
		out, err := cli.CombinedOutput()
		for _, want := range []string{
			"[" + strings.TrimPrefix(l.Node(), path+"/") + "]",
			fmt.Sprintf("ephemeralOwner = %#x", client.Session().ID),
			`"docent":1`,
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("zkCli.sh says no %q:\n%s", want, out)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
