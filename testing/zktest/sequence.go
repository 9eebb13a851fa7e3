package zktest

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
)

// A sequence is a znode that exists before the server starts, and the number of its
// next sequential child.
type sequence struct {
	path string
	next int32
}

// WithSequence makes a znode at path with its parents when the servers start. Its next sequential
// child gets the number next, which must be at least 1. No client can bring a counter near its end
// in a reasonable time. The option may be given more than once.
func WithSequence(path string, next int32) Option {
	return optionFunc(func(c *config) { c.sequences = append(c.sequences, sequence{path, next}) })
}

// valid reports whether a server can begin with it.
func (s sequence) valid() bool {
	names := strings.Split(s.path, "/")
	for _, name := range names[1:] {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return names[0] == "" && len(names) > 1 && s.next >= 1
}

// Types of transactions, and the magic number and version of a log of them.
const (
	createTxn  = 1
	deleteTxn  = 2
	logMagic   = 0x5a4b4c47 // ZKLG
	logVersion = 2
)

// writeSequences writes a transaction log from which a server that starts for the first
// time takes its znodes.
func writeSequences(dataDir string, sequences []sequence) error {
	dir := filepath.Join(dataDir, "version-2")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "log.1"), sequenceLog(sequences), 0o600)
}

// sequenceLog returns the log. A creation carries the counter that it leaves behind, so
// one child, which is deleted again, brings the counter to any number.
func sequenceLog(sequences []sequence) []byte {
	var log txnLog
	log.fields(int32(logMagic), int32(logVersion), int64(0))
	made := map[string]bool{}
	for _, s := range sequences {
		for i, c := range s.path + "/" {
			if path := s.path[:i]; c == '/' && i > 0 && !made[path] {
				made[path] = true
				log.create(path, -1) // one more than before
			}
		}
		log.create(s.path+"/counted", s.next)
		log.add(deleteTxn, s.path+"/counted")
	}
	return log.Bytes()
}

// A txnLog is a transaction log that is being written.
type txnLog struct {
	bytes.Buffer
	zxid int64
}

func (l *txnLog) create(path string, parentCVersion int32) {
	const all = int32(31)
	l.add(createTxn, path, "", int32(1), all, "world", "anyone", false, parentCVersion)
}

// add appends a transaction: checksum, length, header, fields and a mark of its end.
func (l *txnLog) add(kind int32, fields ...any) {
	l.zxid++
	var txn txnLog
	txn.fields(int64(0), int32(0), l.zxid, int64(1), kind) // session, xid, zxid, time
	txn.fields(fields...)
	l.fields(int64(adler32.Checksum(txn.Bytes())), txn.String())
	l.WriteByte('B')
}

// fields appends numbers and booleans as they are, and strings behind their lengths.
func (l *txnLog) fields(fields ...any) {
	for _, field := range fields {
		if s, ok := field.(string); ok {
			l.fields(int32(len(s)))
			l.WriteString(s)
			continue
		}
		_ = binary.Write(l, binary.BigEndian, field) // a buffer takes everything
	}
}
