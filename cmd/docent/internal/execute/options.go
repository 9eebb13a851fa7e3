package execute

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
)

// options are the flags of exec and of hold as they were given.
type options struct {
	lock, read, write, exclusive, leader bool
	semaphore                            int

	nonblock     bool
	wait         time.Duration
	conflictCode int
	grace        time.Duration
	stopSignal   string
	lostSignal   string
	revocable    bool
	leftovers    string
	owner, data  string
	statusFile   string
	onSuspend    string
	noGuard      bool
	noCgroup     bool
	reenter      bool
	acl          string

	set *pflag.FlagSet
	use string // the form of the command, for errors
}

// A job is what exec has to do: checked options and arguments.
type job struct {
	options
	kind       string // as DOCENT_KIND has it
	paths      []string
	command    []string
	stop, lost syscall.Signal
}

// The words of --on-suspend and of --acl.
const (
	suspendKeeps = "keep"
	suspendStops = "stop"
	aclOpen      = "open"
	aclCreator   = "creator"
)

// choices returns the words that the flag takes, nil if it takes others.
func choices(flag string) []string {
	switch flag {
	case "leftovers":
		return []string{string(WaitForLeftovers), string(KillLeftovers), string(IgnoreLeftovers)}
	case "on-suspend":
		return []string{suspendKeeps, suspendStops}
	case "acl":
		return []string{aclOpen, aclCreator}
	}
	return nil
}

// completeChoices has the shell complete the words of the command's flags.
func completeChoices(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if words := choices(f.Name); words != nil {
			cli.Choices(cmd, f.Name, words...)
		}
	})
}

// The forms of the commands.
const (
	execForm = "docent exec PATH… -- CMD [ARG…]"
	holdForm = "docent hold PATH…"
)

// defineLock adds the flags that say which lock, how long to wait for it, and whose it is.
func (o *options) defineLock(set *pflag.FlagSet) {
	o.set = set
	set.BoolVar(&o.lock, "lock", false, "a mutex (default)")
	set.BoolVar(&o.read, "read", false, "the read side of a read/write lock")
	set.BoolVar(&o.write, "write", false, "the write side of a read/write lock")
	set.BoolVar(&o.exclusive, "exclusive", false, "a lock without a queue, of one znode")
	set.IntVar(&o.semaphore, "semaphore", 0, "a permit of a semaphore with `N` permits")
	set.BoolVar(&o.leader, "leader", false, "the leadership of an election")
	set.BoolVarP(&o.nonblock, "nonblock", "n", false, "don't wait: exit code 123 if another owner holds the lock")
	cli.DurationVar(set, &o.wait, "wait", "w", 0, "wait so long at most: then exit code 124")
	set.IntVarP(&o.conflictCode, "conflict-exit-code", "E", 0, "exit code `N` instead of 123 and 124")
	set.StringVar(&o.data, "data", "", "a `text` in the lock's znode")
	set.StringVar(&o.acl, "acl", "", "who may use the lock's znodes: `open`, everybody; or creator, the identities of docent's credentials (default: creator with credentials, else open)")
	set.BoolVar(&o.reenter, "reenter", false, "wait for a lock although an outer docent exec holds it")
}

// define adds the flags of exec.
func (o *options) define(set *pflag.FlagSet) {
	o.defineLock(set)
	o.use = execForm
	set.StringVar(&o.owner, "owner", "", "the owner's `name`, for who and queue (default: the file name of CMD)")
	cli.DurationVar(set, &o.grace, "grace", "", 0, "time from the stop signal to KILL (default: 5s, or less for a short session timeout)")
	set.StringVar(&o.stopSignal, "stop-signal", "TERM", "the `signal` that asks CMD to stop")
	set.StringVar(&o.lostSignal, "on-lost-signal", "KILL", "the `signal` if the lock is gone already")
	set.BoolVar(&o.revocable, "revocable", false, "a request to release the lock stops CMD")
	set.StringVar(&o.leftovers, "leftovers", string(WaitForLeftovers), "what to do with processes that CMD leaves behind: `wait`, kill or ignore")
	set.StringVar(&o.statusFile, "status-file", "", "write one line of JSON about the end to this `file`")
	set.StringVar(&o.onSuspend, "on-suspend", suspendKeeps, "when the connection breaks: `keep` the lock, or stop CMD")
	set.BoolVar(&o.noGuard, "no-guard", false, "start no second process that watches docent")
	set.BoolVar(&o.noCgroup, "no-cgroup", false, "make no control group for CMD")
}

// defineHold adds the flags of hold. What exec does with CMD does not apply.
func (o *options) defineHold(set *pflag.FlagSet) {
	o.defineLock(set)
	o.use = holdForm
	o.stopSignal, o.lostSignal = "TERM", "KILL"
	set.StringVar(&o.owner, "owner", "docent hold", "the owner's `name`, for who and queue")
	cli.DurationVar(set, &o.grace, "grace", "", 0, "time from docent's exit to the end of the lease, if the lock is about to be lost (default: as exec's)")
}

// job returns what the arguments of exec ask for, or all that is wrong with them. dash is the number of
// arguments before "--", or -1.
func (o *options) job(args []string, dash int) (*job, error) {
	if dash < 0 || dash == len(args) {
		return nil, cli.Usage(errors.New("no command: " + o.use))
	}
	j, err := o.lockJob(args[:dash])
	if err != nil {
		return nil, err
	}
	j.command = args[dash:]
	if j.owner == "" {
		j.owner = filepath.Base(j.command[0]) // its arguments may be secrets
	}
	return j, nil
}

// lockJob returns the job of the paths without a command, or all that is wrong.
func (o *options) lockJob(paths []string) (*job, error) {
	j := &job{options: *o, paths: paths}
	faults := []error{j.setKind(), j.checkPaths(), j.setSignals(), j.checkChoices()}
	if !o.set.Changed("grace") {
		j.grace = -1 // the default
	}
	if err := errors.Join(faults...); err != nil {
		return nil, cli.Usage(err)
	}
	return j, nil
}

func (j *job) setKind() error {
	j.kind = "lock"
	chosen := 0
	for kind, given := range map[string]bool{
		"lock": j.lock, "read": j.read, "write": j.write, "exclusive": j.exclusive, "leader": j.leader,
		"semaphore": j.set.Changed("semaphore"),
	} {
		if given {
			j.kind = kind
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return errors.New("--lock, --read, --write, --exclusive, --semaphore and --leader: at most one")
	case j.kind == "semaphore" && j.semaphore < 1:
		return fmt.Errorf("--semaphore %d: must be at least 1", j.semaphore)
	case j.kind == "leader" && j.nonblock:
		return errors.New("--leader: an election has no attempt without waiting; use -w instead of -n")
	case j.revocable && (j.kind == "exclusive" || j.kind == "semaphore"):
		return fmt.Errorf("--revocable: --%s can't be revoked", j.kind)
	}
	return nil
}

func (j *job) checkPaths() error {
	if len(j.paths) == 0 {
		return errors.New("no path: " + j.use)
	}
	var faults []error
	for i, path := range j.paths {
		if err := framework.ValidatePath(path); err != nil {
			faults = append(faults, err)
		}
		if slices.Contains(j.paths[:i], path) {
			faults = append(faults, fmt.Errorf("path %s: given twice", path))
		}
	}
	return errors.Join(faults...)
}

func (j *job) setSignals() error {
	var stop, lost error
	j.stop, stop = parseSignal("--stop-signal", j.stopSignal)
	j.lost, lost = parseSignal("--on-lost-signal", j.lostSignal)
	return errors.Join(stop, lost)
}

func (j *job) checkChoices() error {
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if j.nonblock && j.set.Changed("wait") {
		refuse("-n and -w: at most one")
	}
	if j.set.Changed("wait") && j.wait <= 0 {
		refuse("--wait %v: must be positive; -n does not wait", j.wait)
	}
	if j.set.Changed("grace") && j.grace < 0 {
		refuse("--grace %v: must not be negative", j.grace)
	}
	if j.conflictCode < 0 || j.conflictCode > 255 {
		refuse("--conflict-exit-code %d: must be between 0 and 255", j.conflictCode)
	}
	j.set.VisitAll(func(f *pflag.Flag) {
		words := choices(f.Name)
		if given := f.Value.String(); words != nil && given != f.DefValue && !slices.Contains(words, given) {
			refuse("--%s %q: must be one of %s", f.Name, given, strings.Join(words, ", "))
		}
	})
	if strings.ContainsAny(j.owner, "\n\x00") {
		refuse("--owner: must be one line")
	}
	return errors.Join(faults...)
}
