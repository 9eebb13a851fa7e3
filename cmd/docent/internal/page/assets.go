package page

import (
	"embed"
	"net/http"
	"path"

	"github.com/docent-go/docent/cmd/docent/internal/form"
)

//go:embed assets
var assets embed.FS

// typeOf returns the content type of a file. It does not use the system's table, because that varies.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".ico":
		return "image/x-icon"
	}
	return "text/javascript; charset=utf-8"
}

// addAssets adds the frame of the page and the schema of docent's JSON. Neither needs a token.
func (s *Server) addAssets(mux *http.ServeMux) {
	mux.HandleFunc("GET /schema.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(form.Schema) // an error means that the browser has gone
	})
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // the binary lacks its files
	}
	for _, file := range files {
		route := "/" + file.Name()
		if file.Name() == "index.html" {
			route = "/{$}"
		}
		mux.HandleFunc("GET "+route, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", typeOf(file.Name()))
			http.ServeFileFS(w, r, assets, "assets/"+file.Name())
		})
	}
}
