package docs_test

import (
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// A universe is the packages that pages name, as the compiler sees them.
type universe struct {
	importer types.Importer
	paths    map[string]string // import path by package name
}

const module = "github.com/docent-go/docent"

// known lists the packages whose names pages use.
func known() []string {
	list := []string{
		"bytes", "context", "crypto/tls", "crypto/x509", "database/sql", "errors", "fmt", "iter", "log", "math/rand/v2", "net", "net/http", "net/http/httptest",
		"flag", "os", "os/signal", "syscall", "strconv", "sync", "sync/atomic", "testing", "testing/synctest", "time",
		"github.com/cenkalti/backoff/v4", "go.uber.org/zap", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace",
	}
	for _, own := range []string{
		"cmd/docent/inspect", "framework", "framework/acl", "framework/health", "kerberos", "listeners", "retry",
		"recipes", "recipes/barrier", "recipes/cache", "recipes/counter", "recipes/discovery", "recipes/group", "recipes/leader", "recipes/lock", "recipes/lock/httplock",
		"recipes/model", "recipes/node", "recipes/partition", "recipes/semaphore", "testing/fault", "testing/locktest",
		"testing/zkenv", "testing/zkproxy", "testing/zkserver", "testing/zktest",
	} {
		list = append(list, module+"/"+own)
	}
	return list
}

// nested has the known packages of other modules, by the module's folder.
func nested() map[string]string {
	return map[string]string{"kerberos": module + "/kerberos", "cmd/docent": module + "/cmd/docent/inspect"}
}

// build compiles what is known, which the build cache mostly has, and returns where
// the export data of each package lies.
var build = sync.OnceValues(func() (map[string]string, error) {
	files := map[string]string{}
	var faults []error
	own := known()
	for folder, path := range nested() {
		own = slices.DeleteFunc(own, func(p string) bool { return p == path })
		faults = append(faults, compile(files, filepath.Join(root, folder), path))
	}
	faults = append(faults, compile(files, root, own...)) // wins for what several need
	return files, errors.Join(faults...)
})

// compile adds where the export data of the packages lies, and that of what they need.
func compile(files map[string]string, dir string, packages ...string) error {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, packages...)...)
	list.Dir = dir
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			files[name] = file
		}
	}
	return nil
}

// load returns a universe of the caller's own: importers are not safe for concurrent use.
func load(t *testing.T) *universe {
	t.Helper()
	files := must.Get(build())(t)
	lookup := func(path string) (io.ReadCloser, error) {
		file, ok := files[path]
		if !ok {
			return nil, fmt.Errorf("%s is not among the packages that pages may import: see known", path)
		}
		return os.Open(file)
	}
	u := &universe{
		importer: importer.ForCompiler(token.NewFileSet(), "gc", lookup),
		paths:    map[string]string{"backoff": "github.com/cenkalti/backoff/v4", "rand": "math/rand/v2"},
	}
	for _, p := range known() {
		if name := path.Base(p); name != "v4" && name != "v2" {
			u.paths[name] = p
		}
	}
	return u
}

// exports reports whether the package exports the name, and that has the member if one is given.
func (u *universe) exports(pkg, name, member string) bool {
	imported, err := u.importer.Import(u.paths[pkg])
	if err != nil {
		return false
	}
	object := imported.Scope().Lookup(name)
	if object == nil || member == "" {
		return object != nil
	}
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, imported, member)
	return found != nil
}
