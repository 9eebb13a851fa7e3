package page

import (
	"embed"
	"net/http"
	"path"
)

//go:embed assets
var assets embed.FS

// types are the content types of the files. The system's own table is not asked, because it varies.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

// addAssets adds the frame of the page, which needs no token, and the schema.
func (s *Server) addAssets(mux *http.ServeMux) {
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // the binary lacks its files
	}
	for _, file := range files {
		data, err := assets.ReadFile("assets/" + file.Name())
		if err != nil {
			panic(err)
		}
		route := "/" + file.Name()
		if file.Name() == "index.html" {
			route = "/{$}"
		}
		mux.HandleFunc("GET "+route, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", types[path.Ext(file.Name())])
			_, _ = w.Write(data) // the browser has gone
		})
	}
}
