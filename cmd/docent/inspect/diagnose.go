package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
)

// The bounds of findings.
const (
	crowd       = 500             // more waiters of one lock are reported
	unheard     = time.Minute     // a holder that was asked to release has this time
	counterNear = 1<<31 - 1<<20   // a directory's counter ends at 2^31 - 1
	clockSlack  = 2 * time.Second // a znode may seem to be created so much later than now
)

// Diagnose returns what is wrong, the worst first: the [Deadlocks] of both snapshots, the processes that both
// show to hold a lock and to wait for it by another owner, and what the second shows by itself. It sends no
// request. A holder is reported if it has held for longer than heldLonger, unless that is 0. Ages are those of the
// time of the second snapshot. For what Confirm returned, see [Confirm].
func Diagnose(first, second Snapshot, heldLonger time.Duration) []Finding {
	found := Deadlocks(first, second)
	found = append(found, selfWaitsOfProcesses(first, second, found)...)
	for _, l := range second.Locks {
		found = append(found, ofLock(l)...)
		for _, c := range l.Contenders {
			found = append(found, ofContender(l, c, second.At, heldLonger)...)
		}
	}
	found = append(found, oldSessions(second)...)
	for _, u := range second.Unread {
		found = append(found, ofUnread(u))
	}
	for _, large := range second.Large {
		found = append(found, ofListing(large))
	}
	Sort(found)
	return found
}

// Sort puts the worst findings first.
func Sort(found []Finding) {
	order := []Severity{Error, Warning, Info}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
}

func ofListing(l Listing) Finding {
	severity := Warning
	if l.Bytes >= maxListing {
		severity = Error
	}
	return NewFinding(severity, LargeListing, l.Path, fmt.Sprintf("its listing has %d KiB; clients accept %d KiB by default", l.Bytes>>10, maxListing>>10),
		"Find what creates the children, or divide them among several directories.")
}

func ofUnread(u Unread) Finding {
	switch {
	case errors.Is(u.Err, framework.ErrTooLarge):
		return NewFinding(Error, LargeListing, u.Path, "its listing, or its data, is larger than docent accepts",
			"Find what creates the children, and delete them by name or with a client that accepts more.")
	case errors.Is(u.Err, framework.ErrNotGzip):
		return NewFinding(Info, Unreadable, u.Path, "its data can't be decompressed: they are no gzip, or damaged",
			"Locks there may be missed. With --compress, docent expects the data that Curator's enableCompression and docent's WithCompression write. Ask without it.")
	case !errors.Is(u.Err, framework.ErrNoAuth): // the name
		return NewFinding(Info, Unreadable, u.Path, "it could not be read: "+u.Err.Error(),
			"Locks there are not seen. Find what created it, and delete it with a client that accepts the name.")
	}
	return NewFinding(Info, NoAuth, u.Path, "it could not be read: "+zktel.ErrorType(u.Err), "Locks there are not seen. Use credentials that may read it.")
}

func ofLock(l Lock) []Finding {
	var found []Finding
	for _, path := range l.Foreign {
		found = append(found, NewFinding(Error, Foreign, path, "it is no permit, and takes one of the semaphore's", "Delete it, if nothing else uses it."))
	}
	if l.Mixed {
		found = append(found, NewFinding(Error, Mixed, l.Path, "contenders of several formats are in the directory, and do not exclude each other",
			"Give each format a path of its own; see docs/migrating-from-curator.md for names that all libraries share."))
	}
	if n := len(l.Waiters()); n > crowd {
		found = append(found, NewFinding(Warning, Crowd, l.Path, fmt.Sprintf("%d contenders wait", n),
			"Divide the work among several locks, or limit the waiters of each process."))
	}
	return found
}

func ofContender(l Lock, c Contender, now time.Time, heldLonger time.Duration) []Finding {
	if !c.Read() {
		return nil
	}
	var found []Finding
	add := func(severity Severity, problem Problem, text, advice string) {
		f := NewFinding(severity, problem, c.Znode, text, advice)
		f.Parties = []Party{PartyOf(c)}
		found = append(found, f)
	}
	age := now.Sub(c.Created)
	switch {
	case c.Session != 0:
	case !hasID(c) && c.Meta == nil && l.Kind != Exclusive:
		add(Error, Foreign, "it is no contender that docent, Curator or kazoo made, and others wait for it because of its name",
			"Find what made it. Delete it, if nothing else uses it.")
	default:
		add(Error, NoSession, "its znode belongs to no session, so it stays when its process ends",
			"If no process uses it, end it with docent break --persistent.")
	}
	if c.State == Holds && heldLonger > 0 && age > heldLonger {
		add(Warning, HeldLong, fmt.Sprintf("%s has held %s for %v", PartyOf(c), l.Path, age.Round(time.Second)),
			"See what the process does; docent revoke asks it to release.")
	}
	if asked := now.Sub(c.RevokedAt); c.Revoked && asked > unheard {
		add(Warning, RevokedUnheard, fmt.Sprintf("it was asked to release %v ago, and still exists", asked.Round(time.Second)),
			"Its lock may have no revocation. Stop the process.")
	}
	if c.Sequence > counterNear || c.Sequence < 0 {
		add(Warning, Counter, fmt.Sprintf("its number is %d: the directory's counter nears its end", c.Sequence),
			"Let the directory become empty once, so that it is removed, or use another path.")
	}
	if age < -clockSlack {
		add(Warning, ClocksDiffer, fmt.Sprintf("clocks differ by %v: the znode was created later than now", (-age).Round(time.Second)),
			"Set the clocks of the servers and of this host.")
	}
	return found
}
