package zktest_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestEnvironmentSaysWhatATestDoesWithoutServer(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		name           string
		env            []string
		code           int
		stdout, stderr string
	}{
		{
			"none skips, and says so at the end",
			[]string{"ZK_TEST=none"},
			0, "--- SKIP: TestServerComesAndGoes", "zktest: SKIPPED 2 tests, and all examples, for want of a server: ZK_TEST=none\n",
		},
		{
			"unset skips where nothing is installed",
			[]string{"ZK_TEST=", "PATH=" + nowhere},
			0, "--- SKIP: TestServerComesAndGoes", "zktest: SKIPPED 2 tests, and all examples, for want of a server: not installed: no java in PATH",
		},
		{
			"required fails where nothing is installed",
			[]string{"ZK_TEST=required", "PATH=" + nowhere},
			2, "", "zktest: not installed: no java in PATH; install one (Debian: apt-get install default-jre-headless) or set JAVA_HOME\n",
		},
		{
			"what is set and wrong fails",
			[]string{"ZK_TEST=auto", "ZOOKEEPER_HOME=" + nowhere},
			2, "", "zktest: ZOOKEEPER_HOME=" + nowhere + ": no lib/zookeeper-*.jar there\n",
		},
		{
			"any other value fails",
			[]string{"ZK_TEST=no"},
			2, "", "zktest: ZK_TEST=\"no\": must be auto, required or none\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"-test.v", "-test.run=^(TestServerComesAndGoes|TestKilledSessionIsGone|ExampleStart)$"}
			code, stdout, stderr := result(t, self(t, append(c.env, "JAVA_HOME="), args...))
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, want %d\nstdout, want %q:\n%s\nstderr, want %q:\n%s",
					code, c.code, c.stdout, stdout, c.stderr, stderr)
			}
			if strings.Contains(stdout, "ExampleStart") {
				t.Errorf("the example runs without a server:\n%s", stdout)
			}
		})
	}
}
