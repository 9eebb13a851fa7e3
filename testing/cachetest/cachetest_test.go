package cachetest_test

import (
	"testing"

	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/cachetest"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m, zktest.WithLeakCheck()) }

func TestCache(t *testing.T) { cachetest.Run(t, cache.New) }
