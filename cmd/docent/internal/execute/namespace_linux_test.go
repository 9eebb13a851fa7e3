package execute_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
)

// In another pid namespace's /proc the numbers are those of other processes, and without one docent sees none. Then it
// runs nothing. With a /proc of its own namespace it runs, however that one is mounted.
func TestProc_must_be_of_the_own_namespace(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	_, addr := serve(t)
	for name, c := range map[string]struct {
		unshare string // its flags
		before  string // a script, with an own mount namespace
		code    int
	}{
		"the outer one":           {"-p -f", "", 125},
		"the outer one, twice":    {"-p -f", "unshare -p -f --mount-proc true; ", 125},
		"the outer one, not init": {"-p -f", "sleep 60 & ", 125},
		"none":                    {"-m", "umount -l /proc; ", 125},
		"an empty directory":      {"-m", "mount -t tmpfs none /proc; ", 125},
		"its own":                 {"-p -f --mount-proc", "", 6},
		"its own, read-only":      {"-p -f --mount-proc", "mount -o remount,ro /proc; ", 6},
		"its own, of pids alone":  {"-p -f -m", "mount -t proc -o subset=pid proc /proc; ", 6},
		"its own, hidden":         {"-p -f -m", "mount -t proc -o hidepid=2 proc /proc; ", 6},
		"a mount namespace":       {"-m", "", 6},
		"a user namespace":        {"-U -r", "", 6},
		"all":                     {"-U -r -p -f -m --mount-proc", "", 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "none" && os.Getuid() != 0 {
				apptest.Missing(t, "only root can unmount /proc")
			}
			status, ran := tempFile(t), tempFile(t)
			script := fmt.Sprintf("%s%s exec --connect %s --no-cgroup --status-file %s '/proc/%s' -- sh -c \"echo >%s; setsid sleep 0.2 & exit 6\"; echo code $?",
				c.before, quoted(os.Args[0]), addr, quoted(status), name, quoted(ran))
			cmd := apptest.Program("sh", "-c", unshare()+" "+c.unshare+` sh -c "$0"`, script)
			out, _ := cmd.CombinedOutput()
			if !strings.Contains(string(out), fmt.Sprintf("code %d\n", c.code)) || (contents(ran) != "") != (c.code == 6) {
				t.Errorf("want exit code %d, the command ran: %v\n%s", c.code, contents(ran) != "", out)
			}
			if refused := strings.Contains(contents(status), `"foreign_proc"`) && strings.Contains(string(out), "docent's own pid namespace"); refused != (c.code == 125) {
				t.Errorf("status %s\n%s", contents(status), out)
			}
		})
	}
}

// CMD takes /proc away from docent, as one does that builds an image. docent still sees what CMD leaves behind: it waits
// for it, or ends it.
func TestProc_that_the_command_takes_away(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	_, addr := serve(t)
	for name, takeAway := range map[string]string{
		"unmounted": "umount -l /proc",
		"covered":   "mount -t tmpfs none /proc",
		"of others": "mount -t tmpfs none /proc && mkdir /proc/1",
	} {
		for leftovers, done := range map[string]string{"wait": "done", "kill": ""} {
			t.Run(name+" "+leftovers, func(t *testing.T) {
				t.Parallel()
				end := tempFile(t)
				script := fmt.Sprintf("%s; setsid sh -c 'sleep 2; echo done >%s' & exit 6", takeAway, quoted(end))
				look := fmt.Sprintf(`"$0" "$@"; code=$?; echo seen $(cat %s); exit $code`, quoted(end))
				cmd := apptest.Program("sh", "-c", unshare()+` -m sh -c "$LOOK" "$0" "$@"`, os.Args[0], "exec", "--connect", addr, "--no-cgroup",
					"--leftovers", leftovers, "/away/"+strings.ReplaceAll(name, " ", "-")+"-"+leftovers, "--", "sh", "-c", script)
				cmd.Env = append(cmd.Env, "LOOK="+look)
				out, _ := cmd.CombinedOutput() // also waits for what was left, which has the pipe
				code, seen, wrote := cmd.ProcessState.ExitCode(), strings.Contains(string(out), "seen done\n"), strings.TrimSpace(contents(end))
				if code != 6 || seen != (done != "") || wrote != done {
					t.Errorf("exit code %d, want 6; what was left had written by docent's end: %v, and by its own: %q, want %q\n%s", code, seen, wrote, done, out)
				}
			})
		}
	}
}

// docent runs as an ordinary user where /proc hides other users' processes. It sees that there is one nevertheless.
func TestProc_that_hides_another_users_process(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		apptest.Missing(t, "only root can start programs of two users")
	}
	needNamespaces(t)
	_, addr := serve(t)
	user := newUserPrograms(t)
	said := filepath.Join(filepath.Dir(user.docent), "said")
	script := fmt.Sprintf("mount -t proc -o hidepid=2 proc /proc; exec setpriv --reuid 65534 --regid 65534 --clear-groups %s exec --connect %s --no-cgroup /hidden -- sh -c '%s=\"%s\" \"%s\" </dev/null; for i in $(seq 600); do grep -q \"another user\" \"%s\" && break; sleep 0.1; done' 2>%s",
		quoted(user.docent), addr, becomeRootVariable, user.pid, user.setuid, said, quoted(said))
	cmd := exec.Command("unshare", "-p", "-f", "-m", "sh", "-c", script)
	cmd.Env = []string{apptest.ProgramVariable + "=1", "PATH=" + os.Getenv("PATH"), "LINGER=1"}
	failed, _ := cmd.CombinedOutput()
	out, err := os.ReadFile(said)
	if err != nil {
		t.Fatalf("%v: %s", err, failed)
	}
	if !strings.Contains(string(out), "a process that /proc hides") || !strings.Contains(string(out), "runs as another user, so docent can't stop it") {
		t.Errorf("%s", out)
	}
}
