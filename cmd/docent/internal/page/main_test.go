package page_test

import (
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { apptest.Main(func() { zktest.Main(suite{m}) }, page.New) }

// A suite closes the browser after its tests.
type suite struct{ *testing.M }

func (s suite) Run() int {
	defer func() {
		if browser.stop != nil {
			browser.stop()
		}
	}()
	return s.M.Run()
}
