package main

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// victim is what the tests break.
const victim = "./testdata/victim"

func TestStagesAreRead(t *testing.T) {
	t.Parallel()
	got, err := parseStages(strings.Fields("ZK_TEST=none A=b -run X=y -short ./p ./q -- --test.v ./p"))
	want := []stage{
		{env: []string{"ZK_TEST=none", "A=b"}, flags: []string{"-test.run", "X=y", "-test.short"}, packages: []string{"./p", "./q"}, limit: unmeasured},
		{flags: []string{"-test.v"}, packages: []string{"./p"}, limit: unmeasured},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := parseStages([]string{"./p", "--"}); err == nil {
		t.Error("a stage without a package is taken for one")
	}
}

func TestAMutantIsTriedInStages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sum  string
		want finding
	}{
		"one that the first stage sees is killed there": {
			"func sum(a, b int) int { return a - b }",
			finding{killed, 1, "TestSum"},
		},
		"one that only the second sees is killed there": {
			"func sum(a, b int) int { return max(a, -a) + b }",
			finding{killed, 2, "TestSumOfNegatives"},
		},
		"one that ends the tests is killed by that": {
			"import \"os\"\n\nfunc sum(a, b int) int { os.Exit(3); return 0 }",
			finding{killed, 1, "exit status 3"},
		},
		"one that never ends is hung, not killed": {
			"import \"time\"\n\nfunc sum(a, b int) int { for { time.Sleep(time.Hour) } }",
			finding{hung, 1, "TestSum"},
		},
		"one that changes nothing survives": {
			"func sum(a, b int) int { return b + a }",
			finding{survived, 0, ""},
		},
		"one that does not compile is told, with the reason": {
			"func sum(a, b int) int { return nothing }",
			finding{invalid, 1, "undefined: nothing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings{stages: stages(t, victim+" -- VICTIM=thorough -v "+victim)}
			s.stages[0].limit, s.stages[1].limit = time.Minute, time.Minute
			if tt.want.verdict == hung {
				s.stages[0].limit = 2 * time.Second
			}
			got, err := s.try(t.Context(), mutant{file: "testdata/victim/sum.go", source: []byte("package main\n\n" + tt.sum + "\n")})
			if err != nil || got.verdict != tt.want.verdict || got.stage != tt.want.stage || !strings.Contains(got.by, tt.want.by) {
				t.Errorf("%v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestTestsThatFailWithNothingBrokenProveNothing(t *testing.T) {
	t.Parallel()
	s := settings{of: []string{"testdata/victim/sum.go"}, sample: 1, out: io.Discard}
	if _, err := s.run(t.Context(), []string{"./testdata/nothing"}); err == nil {
		t.Error("a package that is not there is taken for one")
	}
	if _, err := s.run(t.Context(), []string{"-nosuchflag", victim}); err == nil {
		t.Error("tests that fail with nothing broken are taken for good")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.run(ctx, []string{victim}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func stages(t *testing.T, args string) []stage {
	t.Helper()
	all := must.Get(parseStages(strings.Fields(args)))(t)
	return all
}
