package query_test

import (
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/query"
)

func TestMain(m *testing.M) { apptest.Main(m, query.Commands()...) }
