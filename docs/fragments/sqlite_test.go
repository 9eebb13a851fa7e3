package fragments_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A sqlite is a driver for one database file. Python's sqlite3 runs each statement, so that pages'
// SQL meets a real engine, and the module needs no driver.
type sqlite struct{ python, file string }

// openSQLite returns an empty database, or skips the test where no Python is installed.
func openSQLite(t *testing.T) *sql.DB {
	t.Helper()
	python, err := exec.LookPath("/usr/bin/python3") // starts faster than a version manager's
	if err != nil {
		python, err = exec.LookPath("python3")
	}
	if err != nil {
		if os.Getenv("ZK_TEST") == "required" { // a build server
			t.Fatal("python3 is missing, and required: its sqlite3 runs the SQL of pages")
		}
		t.Skip("SKIPPED, NOT TESTED: python3 is missing, whose sqlite3 runs the SQL of pages")
	}
	db := sql.OpenDB(sqlite{python, filepath.Join(t.TempDir(), "db")})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

const runStatement = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
cursor = db.execute(sys.argv[2], {str(i + 1): v for i, v in enumerate(json.loads(sys.argv[3]))})
db.commit()
print(cursor.rowcount)
`

func (s sqlite) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
		if text, ok := arg.Value.([]byte); ok {
			values[i] = string(text)
		}
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, s.python, "-c", runStatement, s.file, query, string(encoded)).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var rows int64
	_, err = fmt.Sscan(string(out), &rows)
	return driver.RowsAffected(rows), err
}

func (s sqlite) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s sqlite) Driver() driver.Driver                        { return nil }
func (s sqlite) Close() error                                 { return nil }
func (s sqlite) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s sqlite) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
