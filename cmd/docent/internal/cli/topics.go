package cli

import "github.com/spf13/cobra"

// topics returns the pages of "docent help TOPIC".
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesTopic},
		{Use: "loss", Short: "When exec stops a command because its lock may be lost", Long: lossTopic},
		{Use: "json", Short: "The form of JSON output", Long: jsonTopic},
	}
}

const exitCodesTopic = `Exit codes of docent exec and docent hold:

  CMD's     CMD ended by itself under the lock; of hold: 0, at the end of its standard input
  128+n     signal n ended CMD, or docent's wait for the lock, or hold (130 is Ctrl-C, 143 is TERM)
  121       the lock was lost, or was about to be and docent stopped CMD, whatever CMD returned
  123       -n: another owner holds the lock
  124       -w: the time is over
  125       docent failed: usage, configuration, connection, credentials; or it died
  126, 127  CMD can't be executed, is not found

-E N replaces 123 and 124. CMD may return any of these codes itself: --status-file says which.

Exit codes of all other commands:

  0    done
  1    failed: connection, credentials, an error of the ensemble
  2    usage
  3    nothing is there ("docent who" of a free lock, "docent ls" of a ROOT that does not exist)
  4    findings ("docent doctor")
  124  the time of "docent wait --timeout" is over
  130  interrupted`

const lossTopic = `docent exec stops CMD before another client can be granted the lock.

D is the lease deadline: until then no ensemble that keeps time grants the lock to another client.
While docent is connected, D moves on. When the connection breaks, D stays, and CMD continues.

  D - G - r   TERM to CMD and all that it has started (--stop-signal). From then on CMD is stopped,
              even if the connection returns. The exit code is 121.
  D - r       KILL to all of them, by docent and by its guard, each by its own clock
  D           the lease is lost

G is --grace: 5 s, or a quarter of R if that is less. r is 500 ms, or a sixteenth of R if that is less.
R = T - M - T/4 is what remains until D in a healthy connection. T is the session timeout that the
servers grant, and M is the lease margin. So CMD rides out an outage of R - G - r. That is 13.75 s of a
session timeout of 30 s.

The guard is the process that you start; its child does the work. If the child is killed, or stopped
past D - r, the guard kills CMD. If the guard is killed, the child kills CMD and releases the lock. What
CMD starts in another process group, session or namespace is stopped as well. A process of another user,
such as sudo's, is stopped only if docent may make a control group for CMD: else docent says so when it
sees one.`

const jsonTopic = `With -o json a command writes one JSON document to standard output, with -o jsonl one per line.
Each has "schema": "docent/v1". Within v1, fields are added, and never changed or removed. Readers
must ignore fields that they don't know. Numbers of more than 53 bits, such as sessions and fences,
are strings.

With -o json an error is a document on standard error:

  {"schema":"docent/v1","error":{"type":"no_auth","message":"…","path":"/locks/pay"}}`
