package query_test

import (
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/query"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { apptest.Main(func() { zktest.Main(m) }, query.Commands()...) }
