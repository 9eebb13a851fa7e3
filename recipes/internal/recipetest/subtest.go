package recipetest

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// Subtest runs body as a parallel subtest, in each environment that the options leave.
func Subtest(t *testing.T, name string, body func(t *testing.T, env *zkenv.Env), opts ...zkenv.Option) {
	t.Helper()
	t.Run(name, func(t *testing.T) { InEachEnv(t, body, opts...) })
}

// InEachEnv runs the test in parallel with others, in each environment that the options leave.
func InEachEnv(t *testing.T, test func(t *testing.T, env *zkenv.Env), opts ...zkenv.Option) {
	t.Helper()
	t.Parallel()
	zkenv.ForEach(t, test, opts...)
}

// InVirtualTime runs the test in parallel with others, in virtual time and with a server of its own.
func InVirtualTime(t *testing.T, test func(t *testing.T, srv *zkserver.Server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, zkserver.Run(t, zkenv.DrawVersion(t)...)) })
}
