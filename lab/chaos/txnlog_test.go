package chaos_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// A txn is an operation of a server's transaction log. Those of one transaction have one zxid.
type txn struct {
	zxid, session int64
	wall          int64 // when the leader proposed it, in milliseconds of the wall clock
	kind          int32
	path          string
	data          uint32 // fingerprint
	number        int64  // that the data is, if it has 8 bytes
	ephemeral     bool
}

// The kinds of transactions in ZooKeeper's log. Of those that fail, the log has an error.
const (
	txnCreate          = 1
	txnDelete          = 2
	txnSet             = 5
	txnMulti           = 14
	txnCreate2         = 15
	txnCreateContainer = 19
	txnDeleteContainer = 20
	txnCreateTTL       = 21
	txnError           = -1
	txnCloseSession    = -11
)

// fingerprint is the checksum by which znodes' data are compared.
func fingerprint(data []byte) uint32 { return crc32.ChecksumIEEE(data) }

// readCommitted returns all transactions that the ensemble has committed, in their order, and how
// many it has discarded: a leader that is deposed may leave some in its log that no other member has.
//
// In each epoch, what is committed is the beginning of what its leader proposed. It ends with the last
// transaction that a majority of the voters has. One that was sent a snapshot has all that this contains.
// Logs and snapshots are never purged during a run. Observers show nothing: on 3.8.0, one that stayed with
// an isolated leader had 51 transactions in its log that neither follower had, nor the next leader.
// Voters are given by their data directories.
func readCommitted(voters []string) (all []txn, discarded int, err error) {
	known := make(map[int64][]txn)
	committed := make(map[int64]int64) // the last zxid of each epoch
	reaches := make(map[int64][]int64) // those of the voters
	for _, dir := range voters {
		reach, err := readServer(dir, known)
		if err != nil {
			return nil, 0, err
		}
		for epoch, zxid := range reach {
			reaches[epoch] = append(reaches[epoch], zxid)
		}
	}
	for epoch, ends := range reaches {
		if majority := len(voters)/2 + 1; len(ends) >= majority {
			slices.SortFunc(ends, func(a, b int64) int { return cmp.Compare(b, a) })
			committed[epoch] = ends[majority-1]
		}
	}
	for _, zxid := range slices.Sorted(maps.Keys(known)) {
		if zxid > committed[epochOf(zxid)] {
			discarded++
			continue
		}
		all = append(all, known[zxid]...)
	}
	return all, discarded, nil
}

func epochOf(zxid int64) int64 { return zxid >> 32 }

// readServer adds a server's transactions to those that are known. It returns the last zxid of each
// epoch that the server has.
func readServer(dir string, known map[int64][]txn) (reach map[int64]int64, err error) {
	reach = make(map[int64]int64)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		kind, number, _ := strings.Cut(entry.Name(), ".")
		zxid, err := strconv.ParseInt(number, 16, 64)
		switch {
		case err != nil:
			continue
		case kind == "snapshot":
			reach[epochOf(zxid)] = max(reach[epochOf(zxid)], zxid)
			continue
		case kind != "log":
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		txns, err := parseLog(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, entry.Name()), err)
		}
		for zxid, ops := range txns {
			known[zxid] = ops
			reach[epochOf(zxid)] = max(reach[epochOf(zxid)], zxid)
		}
	}
	return reach, nil
}

// parseLog returns the transactions of a log by their zxids. A log ends with zeros, or with an entry
// that the server had no time to complete.
func parseLog(content []byte) (map[int64][]txn, error) {
	const magic, header, entryHeader = "ZKLG", 16, 12
	if len(content) < header {
		return nil, nil // the server was killed as it began it
	}
	if !bytes.HasPrefix(content, []byte(magic)) {
		return nil, errors.New("is not a transaction log")
	}
	txns := make(map[int64][]txn)
	for rest := content[header:]; len(rest) > entryHeader; {
		length := int(int32(binary.BigEndian.Uint32(rest[8:])))
		if length <= 0 || len(rest) < entryHeader+length+1 || rest[entryHeader+length] != 'B' {
			break
		}
		ops, err := parseTxn(rest[entryHeader : entryHeader+length])
		if err != nil {
			return nil, err
		}
		if len(ops) > 0 {
			txns[ops[0].zxid] = ops
		}
		rest = rest[entryHeader+length+1:]
	}
	return txns, nil
}

// parseTxn returns the operations of an entry; one without any effect on znodes or sessions has one
// with no path. A transaction that failed has the operations before the first that was refused, too.
func parseTxn(entry []byte) ([]txn, error) {
	d := &jute{rest: entry}
	t := txn{session: d.long()}
	d.int() // cxid
	t.zxid, t.wall, t.kind = d.long(), d.long(), d.int()
	if t.kind != txnMulti {
		t.read(d)
		return []txn{t}, d.err
	}
	ops, failed := []txn{t}, false
	for range d.int() {
		op := t
		op.kind = d.int()
		inner := &jute{rest: d.buffer()}
		op.read(inner)
		ops, failed = append(ops, op), failed || op.kind == txnError
		d.err = errors.Join(d.err, inner.err)
	}
	if failed {
		ops = ops[:1]
	}
	return ops, d.err
}

// read reads what is particular to a kind.
func (t *txn) read(d *jute) {
	switch t.kind {
	case txnCreate, txnCreate2, txnCreateContainer, txnCreateTTL:
		t.path = string(d.buffer())
		t.keep(d.buffer())
		for range d.int() { // the ACL
			d.int()
			d.buffer()
			d.buffer()
		}
		if t.kind == txnCreate || t.kind == txnCreate2 {
			t.ephemeral = d.bool()
		}
	case txnDelete, txnDeleteContainer:
		t.path = string(d.buffer())
	case txnSet:
		t.path = string(d.buffer())
		t.keep(d.buffer())
	}
}

func (t *txn) keep(data []byte) {
	t.data = fingerprint(data)
	if len(data) == 8 {
		t.number = int64(binary.BigEndian.Uint64(data))
	}
}

// A jute reads ZooKeeper's encoding.
type jute struct {
	rest []byte
	err  error
}

func (d *jute) take(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.err, d.rest = errors.New("ends too early"), nil
		return make([]byte, min(max(n, 0), 8))
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *jute) int() int32  { return int32(binary.BigEndian.Uint32(d.take(4))) }
func (d *jute) long() int64 { return int64(binary.BigEndian.Uint64(d.take(8))) }
func (d *jute) bool() bool  { return d.take(1)[0] != 0 }
func (d *jute) buffer() []byte {
	n := d.int()
	if n <= 0 {
		return nil // -1 is none
	}
	return d.take(int(n))
}

// The logs tell what clients were told.
func TestLogsShowWhatClientsDid(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	c := connect(t, server.Addr())
	session := c.Session().ID
	must.Get(c.Create(t.Context(), "/a", []byte("first")))(t)
	must.Get(c.Create(t.Context(), "/a/e", nil, framework.Ephemeral()))(t)
	must.Get(c.Create(t.Context(), "/a/c", nil, framework.Container()))(t)
	seq := must.Get(c.Create(t.Context(), "/a/s-", nil, framework.Sequential()))(t)
	must.Get(c.Set(t.Context(), "/a", []byte("second"), framework.AnyVersion))(t)
	must.Get(c.Txn(t.Context(), framework.OpSet("/a", []byte("12345678"), framework.AnyVersion), framework.OpDelete(seq, framework.AnyVersion)))(t)
	if _, err := c.Txn(t.Context(), framework.OpCreate("/b", nil), framework.OpDelete("/a", 99)); err == nil {
		t.Fatal("a transaction with a false version succeeded")
	}
	if err := c.Delete(t.Context(), "/none"); err == nil {
		t.Fatal("deleted what does not exist")
	}
	stats := make(map[string]framework.Stat)
	for _, path := range []string{"/a", "/a/e", "/a/c"} {
		stat, ok, err := c.Exists(t.Context(), path)
		if err != nil || !ok {
			t.Fatal(path, ok, err)
		}
		stats[path] = stat
	}
	must.OK(t, c.Close())
	committed, discarded, err := readCommitted([]string{server.DataDir()})
	made := grow(committed)
	if err != nil || discarded > 0 || made.closed[session] == 0 {
		t.Fatalf("%d discarded, the session's end at %d, %v", discarded, made.closed[session], err)
	}
	for path, stat := range stats {
		v := made.of(path, stat.Mzxid)
		if v == nil || v.czxid != stat.Czxid || v.owner != stat.EphemeralOwner || v.writer != session || v.wall != stat.Mtime.UnixMilli() {
			t.Errorf("%s: %+v, want %+v", path, v, stat)
		}
	}
	all := made.versions["/a"]
	if len(all) != 3 || all[0].data != fingerprint([]byte("first")) || all[1].data != fingerprint([]byte("second")) || all[2].number != 0x3132333435363738 {
		t.Errorf("versions of /a: %+v", all)
	}
	if end := made.deletion(seq, made.versions[seq][0].czxid); end == nil || end.until != all[2].mzxid || end.by != session {
		t.Errorf("the deletion in a transaction: %+v", end)
	}
	if v := made.last("/a/e"); !v.deleted || v.by != session || v.over() < stats["/a/e"].Mtime.UnixMilli() {
		t.Errorf("the ephemeral znode after its session: %+v", v)
	}
	if orphans, kept := made.orphans(map[string]int64{"/a/e": session, "/a/x": session + 1}); !slices.Equal(orphans, []string{"/a/x"}) || !slices.Equal(kept, []string{"/a/e"}) {
		t.Errorf("orphans %q, and kept by the servers: %q", orphans, kept)
	}
	if len(made.versions["/b"]) > 0 {
		t.Error("the refused transaction is in the tree")
	}
}

// What was committed is what a majority has, by its logs or by snapshots.
func TestDiscardedTransactionsAreLeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		voters    [3][]int64 // zxids in their logs
		snapshot  int64      // of the third
		committed int
		discarded int
	}{
		"all have all":                           {[3][]int64{{1, 2}, {1, 2}, {1, 2}}, 0, 2, 0},
		"one has more":                           {[3][]int64{{1, 2, 3}, {1, 2}, {1}}, 0, 2, 1},
		"the next leader has not what one has":   {[3][]int64{{1, 2, 3}, {1, 2, 1<<32 + 1}, {1, 2, 1<<32 + 1}}, 0, 3, 1},
		"one was sent a snapshot of it":          {[3][]int64{{1, 2, 3}, {1}, {1}}, 3, 3, 0},
		"another is missing what was in between": {[3][]int64{{1, 2, 3}, {3}, {1}}, 0, 3, 0},
	} {
		var dirs []string
		for i, zxids := range c.voters {
			dir := t.TempDir()
			must.OK(t, os.WriteFile(filepath.Join(dir, "log.1"), logOf(zxids), 0o600))
			if i == 2 && c.snapshot > 0 {
				must.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("snapshot.%x", c.snapshot)), nil, 0o600))
			}
			dirs = append(dirs, dir)
		}
		committed, discarded, err := readCommitted(dirs)
		if err != nil || len(committed) != c.committed || discarded != c.discarded {
			t.Errorf("%s: %v, %d discarded, %v; want %d and %d", name, committed, discarded, err, c.committed, c.discarded)
		}
	}
}

// logOf is a log of deletions, with an entry at its end that is not complete.
func logOf(zxids []int64) []byte {
	log := append([]byte("ZKLG"), make([]byte, 12)...)
	for _, zxid := range zxids {
		var entry []byte
		entry = binary.BigEndian.AppendUint64(entry, 7)
		entry = binary.BigEndian.AppendUint32(entry, 0)
		entry = binary.BigEndian.AppendUint64(entry, uint64(zxid))
		entry = binary.BigEndian.AppendUint64(entry, 0)
		entry = binary.BigEndian.AppendUint32(entry, txnDelete)
		entry = append(binary.BigEndian.AppendUint32(entry, 2), "/a"...)
		log = binary.BigEndian.AppendUint64(log, 1)
		log = append(binary.BigEndian.AppendUint32(log, uint32(len(entry))), entry...)
		log = append(log, 'B')
	}
	return append(log, make([]byte, 100)...)
}

// saveLogs keeps the transaction logs of a run that has failed.
func (r *run) saveLogs(t *testing.T) {
	t.Helper()
	for i, s := range r.ensemble.Servers {
		dir := filepath.Join(resultDir, fmt.Sprintf("server-%d", i+1))
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(s.DataDir()))); err != nil {
			t.Error(err)
		}
		t.Logf("transaction logs and snapshots of %s: %s", s.Addr(), dir)
	}
}
