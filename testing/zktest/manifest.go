package zktest

import (
	"archive/zip"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// maxManifest bounds what is read of a manifest; Debian's has about 1 KB.
const maxManifest = 1 << 20

// manifestClassPath returns the files that the jar's manifest names in its
// Class-Path, as absolute paths. A jar without that attribute has none.
func manifestClassPath(jar string) ([]string, error) {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	file, err := archive.Open("META-INF/MANIFEST.MF")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxManifest))
	if err != nil {
		return nil, err
	}
	var paths []string
	for entry := range strings.FieldsSeq(manifestAttribute(string(text), "Class-Path")) {
		path, err := url.PathUnescape(entry) // entries are relative URLs
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(jar), path)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// hasFile reports whether the jar holds the file.
func hasFile(jar, name string) (bool, error) {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return false, err
	}
	defer archive.Close()
	return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name }), nil
}

// manifestAttribute returns an attribute of the manifest's main section, which ends with an empty
// line. A line that starts with a space continues the previous line.
func manifestAttribute(text, name string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	main, _, _ := strings.Cut(text, "\n\n")
	main = strings.ReplaceAll(main, "\n ", "")
	for line := range strings.Lines(main) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.EqualFold(key, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
