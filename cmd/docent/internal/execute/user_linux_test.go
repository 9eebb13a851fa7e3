package execute_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
)

// becomeRootVariable makes the test binary, which must have the setuid bit, a process of root's that
// writes its id to this file and sleeps, as sudo does.
const becomeRootVariable = "DOCENT_TEST_BECOME_ROOT"

// becomeRoot is the process of [becomeRootVariable].
func becomeRoot(file string) {
	if err := syscall.Setuid(0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
	if os.Getenv("LINGER") != "" {
		<-time.After(3 * time.Second)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test has ended
}

// asRoot runs the program as root: directly, or by sudo, which asks for no password on a build server.
func asRoot(name string, args ...string) error {
	if os.Getuid() != 0 {
		name, args = "sudo", append([]string{"-n", name}, args...)
	}
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// userPrograms are copies of the test binary that other users may run.
type userPrograms struct {
	dir    string // every user may write in it
	docent string
	setuid string // becomes root's: see becomeRoot
	pid    string // where that one writes its process id
}

func newUserPrograms(t *testing.T) userPrograms {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "docent-user"))(t) //nolint:usetesting // t.TempDir's parents are closed to other users
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	u := userPrograms{dir, filepath.Join(dir, "docent"), filepath.Join(dir, "setuid"), filepath.Join(dir, "pid")}
	for _, err := range []error{
		os.Chmod(dir, 0o777), exec.Command("cp", os.Args[0], u.docent).Run(), os.Chmod(u.docent, 0o755),
		asRoot("install", "-o", "root", "-m", "4755", os.Args[0], u.setuid),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// docent runs as an ordinary user, and its command as root. docent says at once that it can't stop the
// command. When the lock is lost it does not claim that it has.
func TestCommand_of_another_user(t *testing.T) {
	t.Parallel()
	if err := asRoot("true"); err != nil {
		apptest.Missing(t, "only root can start programs of two users: "+err.Error())
	}
	srv, addr := serve(t)
	user := newUserPrograms(t)
	dir, docent, setuid, pid := user.dir, user.docent, user.setuid, user.pid
	status := filepath.Join(dir, "status")
	cmd := exec.Command(docent, "exec", "--connect", addr, "--session-timeout", short, "--status-file", status, "/user", "--",
		"env", becomeRootVariable+"="+pid, setuid)
	cmd.Env, cmd.Dir = []string{apptest.ProgramVariable + "=1", "PATH=" + os.Getenv("PATH")}, dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	in := must.Get(cmd.StdinPipe())(t)
	p := launch(t, cmd)
	t.Cleanup(func() { in.Close() })
	root := await(t, pid)
	named := "setuid (pid " + root + ")"
	eventually(t, "docent warns", func() bool {
		return strings.Contains(p.err.String(), named+" runs as another user, so docent can't stop it")
	})
	srv.Refuse()
	srv.Cut()
	eventually(t, "docent says that KILL is refused", func() bool {
		return strings.Contains(p.err.String(), "may not send KILL, because they run as another user: "+named)
	})
	eventually(t, "docent says what that means", func() bool {
		return strings.Contains(p.err.String(), "does not end after KILL, and the lock is lost: it may run beside the next holder's command: "+named)
	})
	eventually(t, "the status says it while it runs", func() bool {
		return strings.Contains(contents(status), `"not_ended":[{"pid":`+root+`,"name":"setuid"}]`)
	})
	in.Close() // the command ends
	p.ends(t, "it", 121)
}
