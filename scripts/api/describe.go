package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// describe returns a line for each exported name of pkg, field and method, sorted.
func describe(pkg *types.Package) []string {
	d := description{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if object := pkg.Scope().Lookup(name); object.Exported() {
			d.object(object)
		}
	}
	slices.Sort(d.lines)
	return d.lines
}

type description struct {
	pkg   *types.Package
	lines []string
}

func (d *description) object(object types.Object) {
	switch o := object.(type) {
	case *types.Const:
		d.add("const %s %s = %s", o.Name(), d.text(o.Type()), o.Val().ExactString())
	case *types.TypeName:
		d.typeName(o)
	default:
		d.add("%s", types.ObjectString(o, d.qualify))
	}
}

func (d *description) typeName(o *types.TypeName) {
	if o.IsAlias() {
		d.add("%s", types.ObjectString(o, d.qualify))
		return
	}
	named := o.Type().(*types.Named)
	switch under := named.Underlying().(type) {
	case *types.Struct:
		d.add("type %s struct", d.text(named))
		d.fields(o.Name(), under)
	case *types.Interface:
		d.interfaceType(named, under)
		return
	default:
		d.add("type %s %s", d.text(named), d.text(under))
	}
	d.methods(named)
}

func (d *description) fields(name string, s *types.Struct) {
	for field := range s.Fields() {
		switch {
		case !field.Exported():
		case field.Embedded():
			d.add("type %s struct, embedded %s", name, d.text(field.Type()))
		default:
			d.add("type %s struct, %s %s", name, field.Name(), d.text(field.Type()))
		}
	}
}

// interfaceType has all methods in one line: a user's own implementation needs all.
func (d *description) interfaceType(named *types.Named, i *types.Interface) {
	var methods []string
	for method := range i.Methods() {
		if !method.Exported() {
			methods = append(methods, "unexported methods")
			continue
		}
		methods = append(methods, method.Name()+strings.TrimPrefix(d.text(method.Type()), "func"))
	}
	if !i.IsMethodSet() {
		methods = append(methods, d.text(i)) // a constraint
	}
	d.add("type %s interface { %s }", d.text(named), strings.Join(slices.Compact(methods), "; "))
}

// methods has promoted methods, too.
func (d *description) methods(named *types.Named) {
	byValue := types.NewMethodSet(named)
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		method := selection.Obj()
		if !method.Exported() {
			continue
		}
		receiver := "*" + d.text(named)
		if byValue.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = d.text(named)
		}
		d.add("method (%s) %s%s", receiver, method.Name(), strings.TrimPrefix(d.text(selection.Type()), "func"))
	}
}

func (d *description) text(t types.Type) string { return types.TypeString(t, d.qualify) }

// qualify names packages by their path, below the root module's if they are docent's, and d's own
// not at all.
func (d *description) qualify(pkg *types.Package) string {
	if pkg == d.pkg {
		return ""
	}
	return strings.TrimPrefix(pkg.Path(), root)
}

func (d *description) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}
