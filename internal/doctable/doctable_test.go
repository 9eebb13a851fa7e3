package doctable_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/docent-go/docent/internal/doctable"
	"github.com/docent-go/docent/internal/must"
)

const page = "# Page\n\n## One\n\n| name | what |\n|---|---|\n| `a` | other |\n\n## Two\n\n| name | what |\n|:--|--:|\n" +
	"| `x`, `y` | first |\n| z | second |\ntext\n| else | what |\n|---|---|\n| w | third |\n"

func TestReadFindsTheRowsOfOneTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	must.OK(t, os.WriteFile(file, []byte(page), 0o600))
	rows, err := doctable.Read(file, "Two", "name")
	want := []doctable.Row{{"name": "`x`, `y`", "what": "first"}, {"name": "z", "what": "second"}}
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %v, %v; want %v", rows, err, want)
	}
	if got, want := doctable.Code(rows[0]["name"]), []string{"x", "y"}; !reflect.DeepEqual(got, want) {
		t.Errorf("code %q, want %q", got, want)
	}
	for _, missing := range [][3]string{{file, "Three", "name"}, {file, "One", "else"}, {file + "x", "One", "name"}} {
		if rows, err := doctable.Read(missing[0], missing[1], missing[2]); err == nil {
			t.Errorf("%v: rows %v, want an error", missing, rows)
		}
	}
}
