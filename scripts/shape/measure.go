package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A shape is what was measured of one package.
type shape struct {
	name       string
	files      []int // lines of each file
	functions  []int // lines of each function
	branches   []int // cyclomatic complexity of each function
	exports    int   // top-level exported names
	methods    int   // exported methods of exported types
	documented int   // of exports and methods
	comments   int   // lines that hold a comment
	code       int   // lines that hold code
	fields     int   // of the struct with most fields
	arrows     int   // pairs of files of which the first uses names of the second
	back       int   // of the arrows, those against the best order of the files that was found
}

func measure(name, dir string) (shape, error) {
	s := shape{name: name}
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return s, err
	}
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return s, err
		}
		file, err := parser.ParseFile(fset, path, source, parser.ParseComments)
		if err != nil {
			return s, err
		}
		parsed = append(parsed, file)
		s.addSource(source)
		s.addDeclarations(fset, file)
	}
	s.arrows, s.back = uses(fset, parsed)
	return s, nil
}

// addSource counts the lines of a file that hold code, and those that hold a comment.
func (s *shape) addSource(source []byte) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var scan scanner.Scanner
	scan.Init(file, source, nil, scanner.ScanComments)
	code, comments := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, text := scan.Scan()
		if tok == token.EOF {
			break
		}
		lines := code
		if tok == token.COMMENT {
			lines = comments
		}
		first := file.Line(pos)
		for i := range strings.Count(text, "\n") + 1 {
			if text != "\n" { // a semicolon that the scanner inserted
				lines[first+i] = true
			}
		}
	}
	s.files = append(s.files, file.LineCount())
	s.code += len(code)
	s.comments += len(comments)
}

func (s *shape) addDeclarations(fset *token.FileSet, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			s.addFunction(fset, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.addSpec(d, spec)
			}
		}
	}
}

func (s *shape) addFunction(fset *token.FileSet, f *ast.FuncDecl) {
	s.functions = append(s.functions, fset.Position(f.End()).Line-fset.Position(f.Pos()).Line+1)
	s.branches = append(s.branches, complexity(f))
	switch {
	case !f.Name.IsExported():
	case f.Recv == nil:
		s.export(&s.exports, f.Doc != nil)
	case ast.IsExported(receiver(f)):
		s.export(&s.methods, f.Doc != nil)
	}
}

func (s *shape) addSpec(d *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if t, ok := spec.Type.(*ast.StructType); ok {
			s.fields = max(s.fields, t.Fields.NumFields())
		}
		if spec.Name.IsExported() {
			s.export(&s.exports, d.Doc != nil || spec.Doc != nil)
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() { // a group's comment documents its members
				s.export(&s.exports, d.Doc != nil || spec.Doc != nil || spec.Comment != nil)
			}
		}
	}
}

func (s *shape) export(count *int, documented bool) {
	*count++
	if documented {
		s.documented++
	}
}

// receiver returns the name of the type that f is a method of.
func receiver(f *ast.FuncDecl) string {
	expr := f.Recv.List[0].Type
	for {
		switch t := expr.(type) {
		case *ast.StarExpr:
			expr = t.X
		case *ast.IndexExpr:
			expr = t.X
		case *ast.IndexListExpr:
			expr = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// complexity is McCabe's number, counted as golang.org/x/tools' and gocyclo do: one, and one
// for each branch, loop, case and short-circuit operator. Function literals count to f.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// quantile returns the q-quantile of the numbers, by the nearest rank.
func quantile(numbers []int, q float64) int {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
