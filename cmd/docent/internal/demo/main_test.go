package demo_test

import (
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/demo"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { apptest.Main(func() { zktest.Main(m) }, demo.New) }
