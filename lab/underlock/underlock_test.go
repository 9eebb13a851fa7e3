// Package underlock checks that no code of a user's runs while docent holds a mutex.
package underlock

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const module = "github.com/docent-go/docent"

// roots are the modules with code that users link.
var roots = []string{
	"../..", "../../kerberos", "../../recipes/lock/grpclock", "../../recipes/discovery/grpcresolver",
	"../../recipes/schedule/crondocent", "../../recipes/schedule/gocrondocent",
}

// harmless are the calls under a mutex that run nothing of a user's, or have to be there: "the function that
// holds the mutex: what it may call", and why.
var harmless = map[string]string{
	"(*framework.core).await: context.Cause":                                      ownContext,
	"(*framework.core).transitionIf: context.Cause":                               ownContext,
	"(*framework.core).transitionIf: context.Context.Err":                         ownContext,
	"(*framework.deletes).next: context.Context.Err":                              ownContext,
	"(*internal/membership.Set).reserve: context.Context.Err":                     ownContext,
	"(*framework/internal/session.Session).findDue: context.Cause":                ownContext,
	"(*framework/internal/watchreg.Beginning).share: context.Context.Err":         ownContext,
	"(*internal/hold.monitor).context: context.WithCancel":                        ownContext,
	"(*internal/hold.monitor).context: func recipes/internal/hold.monitor.cancel": ownContext,
	"(*counter.combiner).submit: context.WithCancel":                              detached,
	"(*counter.combiner).finish: context.WithCancel":                              detached,
	"(*internal/waitqueue.listings).join: context.WithCancel":                     detached,

	"(*framework/internal/session.Session).lose: errors.Is":                                                                   "the cause of a session's end is one of docent's sentinels",
	"(*framework/internal/session.Session).findDue: func framework/internal/session.Config.Margin":                            ownFunction,
	"(*framework/internal/wire.Wire).record: func framework/internal/wire.Config.MarginFor":                                   ownFunction,
	"(*framework/internal/watchreg.Beginning).share: func framework/internal/watchreg.Beginning.send":                         ownFunction,
	"(*framework/internal/session.Hold).unlessLost: func parameter register of (*framework/internal/session.Hold).unlessLost": ownFunction,
	"(*framework.core).setServers: func parameter change of (*framework.core).setServers":                                     ownFunction,
	"(*framework.core).transitionIf: func parameter next of (*framework.core).transitionIf":                                   ownFunction,
	"(*framework.core).await: func parameter ready of (*framework.core).await":                                                ownFunction,
	"(*node.Node).wait: func parameter ready of (*node.Node).wait":                                                            ownFunction,
	"(*counter.shared).combiner: func parameter create of (*counter.shared).combiner":                                         ownFunction,
	"(*internal/membership.Names).change: func parameter do of (*internal/membership.Names).change":                           ownFunction,
	"(*cache.loop).sync: func recipes/cache.sharedState.wake":                                                                 ownFunction,
	"(*internal/hold.Hold).notify: func recipes/internal/hold.Options.Lost":                                                   ownFunction,
	"(retry.randOption).apply$1: func variable source of (retry.randOption).apply$1":                                          "the mutex is there for this function, and for nothing else",

	// The watch registry's functions start a goroutine, and the function runs there.
	"(*framework/internal/watchreg.Beginning).missed: func framework/internal/watchreg.Registry.spawn":          ownFunction,
	"(*framework/internal/watchreg.Registry).Fire: func framework/internal/watchreg.Registry.spawn":             ownFunction,
	"(*framework/internal/watchreg.Registry).FireAll: func framework/internal/watchreg.Registry.spawn":          ownFunction,
	"(*framework/internal/watchreg.Subscription).AfterFire: func framework/internal/watchreg.Registry.spawn":    ownFunction,
	"(*framework/internal/watchreg.Subscription).FireWithin$1: func framework/internal/watchreg.Registry.spawn": ownFunction,
	"(*internal/hold.monitor).await: func framework/internal/watchreg.Registry.spawn":                           ownFunction,

	// The session sends a removal, or takes it back, without waiting.
	"(*framework/internal/watchreg.Beginning).missed: func framework/internal/watchreg.Registry.remove":          ownFunction,
	"(*framework/internal/watchreg.Registry).Fire: func framework/internal/watchreg.Registry.remove":             ownFunction,
	"(*framework/internal/watchreg.Registry).Removed: func framework/internal/watchreg.Registry.remove":          ownFunction,
	"(*framework/internal/watchreg.Subscription).Close: func framework/internal/watchreg.Registry.remove":        ownFunction,
	"(*framework/internal/watchreg.Subscription).FireWithin$1: func framework/internal/watchreg.Registry.remove": ownFunction,
	"(*internal/hold.monitor).await: func framework/internal/watchreg.Registry.remove":                           ownFunction,
}

// Reasons that several have.
const (
	ownContext  = "the context is docent's own, and has no parent of a user's"
	detached    = "context.WithoutCancel has no Done, so WithCancel asks nothing of its parent"
	ownFunction = "the function is always docent's own, and is followed"
)

// A checker knows what each function may call.
type checker struct {
	callees map[ssa.CallInstruction][]*ssa.Function // of dynamic calls, in docent
	reaches map[*ssa.Function]map[string]string     // user's code by name -> the way to it
}

// load returns the packages of a module, and those of docent.
func load(t *testing.T, dir string) []*packages.Package {
	t.Helper()
	cfg := &packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedExportFile | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
	}
	patterns := []string{module + "/framework/...", module + "/recipes/...", module + "/internal/...", module + "/retry", module + "/listeners"}
	if dir != roots[0] {
		patterns = append(patterns, "./...")
	}
	pkgs, err := packages.Load(cfg, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

// ours reports whether the function is in docent.
func ours(f *ssa.Function) bool {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if f.Origin() != nil {
		f = f.Origin()
	}
	if f.Pkg != nil {
		return strings.HasPrefix(f.Pkg.Pkg.Path(), module+"/")
	}
	return f.Object() != nil && f.Object().Pkg() != nil && strings.HasPrefix(f.Object().Pkg().Path(), module+"/")
}

// The check follows each call that is made while a mutex is held, through docent's functions, until it
// leaves docent: through a function value, an interface that users implement (a meter, a context, an error,
// a policy), the logger, or a function of the standard library that calls methods of its arguments (fmt,
// errors, encoding/json, context).
func TestNoUserCodeUnderAMutex(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for _, root := range roots {
		check(t, load(t, root), found)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if harmless[key] == "" {
			t.Errorf("%s\n\tthe way: %s", key, found[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(harmless)) {
		if found[key] == "" {
			t.Errorf("harmless has %q, which is not found any more", key)
		}
	}
}

// check adds what it finds in the packages: the way from the call.
func check(t *testing.T, pkgs []*packages.Package, found map[string]string) {
	t.Helper()
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatal(p.PkgPath, e)
		}
	}
	prog, _ := ssautil.Packages(pkgs, ssa.InstantiateGenerics)
	prog.Build()
	all := ssautil.AllFunctions(prog)
	for _, p := range pkgs { // generic ones too, which nothing may have instantiated
		for _, obj := range p.TypesInfo.Defs {
			if fn, ok := obj.(*types.Func); ok {
				if f := prog.FuncValue(fn); f != nil {
					addAll(all, f)
				}
			}
		}
	}
	c := &checker{callees: map[ssa.CallInstruction][]*ssa.Function{}, reaches: map[*ssa.Function]map[string]string{}}
	for _, n := range vta.CallGraph(all, cha.CallGraph(prog)).Nodes {
		for _, e := range n.Out {
			if e.Site != nil {
				c.callees[e.Site] = append(c.callees[e.Site], e.Callee.Func)
			}
		}
	}
	c.solve(all)
	for f := range all {
		if !ours(f) || len(f.Blocks) == 0 || strings.Contains(short(f), "recipetest.") { // a helper of tests
			continue
		}
		for _, site := range heldCalls(f) {
			for what, way := range c.of(site) {
				p := prog.Fset.Position(site.Pos())
				found[short(f)+": "+what] = fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, way)
			}
		}
	}
}

// addAll adds the function, and those in it.
func addAll(all map[*ssa.Function]bool, f *ssa.Function) {
	all[f] = true
	for _, in := range f.AnonFuncs {
		addAll(all, in)
	}
}

// short returns the name of the function, without the types that a generic one has been made for.
func short(f *ssa.Function) string {
	name := f.String()
	if f.Origin() != nil {
		name = f.Origin().String()
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, module+"/", ""), "recipes/", "")
}

// solve finds what each function may call, until nothing is new.
func (c *checker) solve(all map[*ssa.Function]bool) {
	for again := true; again; {
		again = false
		for f := range all {
			if !ours(f) {
				continue
			}
			for _, b := range f.Blocks {
				for _, in := range b.Instrs {
					site, ok := in.(ssa.CallInstruction)
					if !ok {
						continue
					}
					for what, way := range c.of(site) {
						if c.reaches[f] == nil {
							c.reaches[f] = map[string]string{}
						}
						if c.reaches[f][what] == "" {
							c.reaches[f][what] = short(f) + " > " + way
							again = true
						}
					}
				}
			}
		}
	}
}

// of returns the user's code that a call may run, with the way to it.
func (c *checker) of(site ssa.CallInstruction) map[string]string {
	if _, ok := site.(*ssa.Go); ok {
		return nil
	}
	got := map[string]string{}
	call := site.Common()
	if _, ok := call.Value.(*ssa.Builtin); ok {
		return nil
	}
	if what := sink(call); what != "" {
		got[what] = what
	}
	callees := c.callees[site]
	if f := call.StaticCallee(); f != nil {
		callees = []*ssa.Function{f}
		if !ours(f) && !elsewhere[f.String()] {
			for _, arg := range call.Args { // a function that the standard library calls
				if mc, ok := arg.(*ssa.MakeClosure); ok {
					callees = append(callees, mc.Fn.(*ssa.Function))
				} else if fn, ok := arg.(*ssa.Function); ok {
					callees = append(callees, fn)
				}
			}
		}
	}
	for _, f := range callees {
		if f.Origin() != nil && c.reaches[f] == nil { // an instance of no type yet
			f = f.Origin()
		}
		for what, way := range c.reaches[f] {
			got[what] = way
		}
	}
	return got
}

// elsewhere are functions that run their function on another goroutine.
var elsewhere = map[string]bool{"time.AfterFunc": true, "context.AfterFunc": true, "(*sync.WaitGroup).Go": true}

// sink returns the name of the user's code that the call itself may run, "" if it runs none.
func sink(call *ssa.CallCommon) string {
	if call.IsInvoke() {
		return invoked(call)
	}
	f := call.StaticCallee()
	if f == nil {
		return "func " + origin(call.Value)
	}
	if ours(f) {
		return ""
	}
	name := f.String()
	if f.Origin() != nil {
		name = f.Origin().String()
	}
	for _, prefix := range []string{"(*go.uber.org/zap.Logger).", "(*go.uber.org/zap/zapcore.CheckedEntry).", "encoding/json.", "(*encoding/json.", "context.With", "context.AfterFunc", "context.Cause", "errors.Is", "errors.As"} {
		if strings.HasPrefix(name, prefix) && name != "context.WithValue" && name != "context.WithoutCancel" {
			return name
		}
	}
	if strings.HasPrefix(name, "fmt.") && formatsForeign(call) {
		return name
	}
	return ""
}

// formatsForeign reports whether an operand may be of a type of the user's.
func formatsForeign(call *ssa.CallCommon) bool {
	if len(call.Args) == 0 {
		return false
	}
	last := call.Args[len(call.Args)-1]
	sl, ok := last.(*ssa.Slice)
	if !ok {
		return false
	}
	for _, ref := range *sl.X.Referrers() {
		ia, ok := ref.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, r := range *ia.Referrers() {
			st, ok := r.(*ssa.Store)
			if !ok {
				continue
			}
			v := st.Val
			if mi, ok := v.(*ssa.MakeInterface); ok {
				v = mi.X
			}
			if ci, ok := v.(*ssa.ChangeInterface); ok {
				v = ci.X
			}
			if types.IsInterface(v.Type()) && !global(v) {
				return true
			}
		}
	}
	return false
}

// global reports whether the value is a package's variable, as ErrClosed.
func global(v ssa.Value) bool {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return false
	}
	_, ok = load.X.(*ssa.Global)
	return ok
}

// invoked returns the name of the interface's method, "" if only docent implements the interface.
func invoked(call *ssa.CallCommon) string {
	named, ok := types.Unalias(call.Value.Type()).(*types.Named)
	if !ok {
		return "interface." + call.Method.Name()
	}
	obj := named.Obj()
	if obj.Pkg() != nil && strings.HasPrefix(obj.Pkg().Path(), module+"/") && (!obj.Exported() || strings.Contains(obj.Pkg().Path(), "/internal/")) {
		return ""
	}
	if obj.Pkg() == nil {
		return obj.Name() + "." + call.Method.Name()
	}
	return obj.Pkg().Path() + "." + obj.Name() + "." + call.Method.Name()
}

// origin names where a function value comes from.
func origin(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.UnOp:
		return origin(v.X)
	case *ssa.FieldAddr:
		return strings.ReplaceAll(v.X.Type().Underlying().(*types.Pointer).Elem().String(), module+"/", "") + "." +
			v.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct).Field(v.Field).Name()
	case *ssa.Field:
		return strings.ReplaceAll(v.X.Type().String(), module+"/", "") + "." + v.X.Type().Underlying().(*types.Struct).Field(v.Field).Name()
	case *ssa.Parameter:
		return "parameter " + v.Name() + " of " + short(v.Parent())
	case *ssa.FreeVar:
		return "variable " + v.Name() + " of " + short(v.Parent())
	case *ssa.Phi:
		for _, e := range v.Edges {
			if _, c := e.(*ssa.Const); !c && e != ssa.Value(v) {
				return origin(e)
			}
		}
	case *ssa.Extract:
		return origin(v.Tuple)
	case *ssa.Call:
		return "result of " + v.Call.Value.String()
	}
	return fmt.Sprintf("%s of type %s", v.Name(), strings.ReplaceAll(v.Type().String(), module+"/", ""))
}

// heldCalls returns the calls of f that may be made while a mutex is held that f locked.
func heldCalls(f *ssa.Function) []ssa.CallInstruction {
	in := map[*ssa.BasicBlock]map[string]bool{f.Blocks[0]: {}}
	work := []*ssa.BasicBlock{f.Blocks[0]}
	var out []ssa.CallInstruction
	seen := map[ssa.CallInstruction]bool{}
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		held := maps.Clone(in[b])
		for _, instr := range b.Instrs {
			site, ok := instr.(ssa.CallInstruction)
			if !ok {
				continue
			}
			mu, locks, is := mutexCall(site)
			_, deferred := site.(*ssa.Defer)
			switch {
			case is && deferred:
			case is && locks:
				held[mu] = true
			case is:
				delete(held, mu)
			case len(held) > 0 && !seen[site]:
				seen[site] = true
				out = append(out, site)
			}
		}
		for _, next := range b.Succs {
			if in[next] == nil {
				in[next] = maps.Clone(held)
				work = append(work, next)
				continue
			}
			n := len(in[next])
			maps.Copy(in[next], held)
			if len(in[next]) > n {
				work = append(work, next)
			}
		}
	}
	return out
}

// mutexCall reports whether the call locks or unlocks a mutex, and which one.
func mutexCall(site ssa.CallInstruction) (mu string, locks, is bool) {
	f := site.Common().StaticCallee()
	if f == nil {
		return "", false, false
	}
	switch f.String() {
	case "(*sync.Mutex).Lock", "(*sync.RWMutex).Lock", "(*sync.RWMutex).RLock", "(*sync.Mutex).TryLock":
		locks = true
	case "(*sync.Mutex).Unlock", "(*sync.RWMutex).Unlock", "(*sync.RWMutex).RUnlock":
	default:
		return "", false, false
	}
	return place(site.Common().Args[0]), locks, true
}

// place names the mutex by the fields that lead to it.
func place(v ssa.Value) string {
	if fa, ok := v.(*ssa.FieldAddr); ok {
		return place(fa.X) + fmt.Sprintf(".%d", fa.Field)
	}
	if u, ok := v.(*ssa.UnOp); ok {
		return place(u.X)
	}
	return v.Name()
}
