package mockmodel

import (
	"encoding/json"
	"net/http"
)

// The control paths, for tests in other processes:
//
//	POST /control/script      a JSON list of replies, added to the script
//	POST /control/open?gate=  opens a gate
//	GET  /control/requests    the requests so far
//	GET  /control/waiting?gate=  how many replies wait there
//	POST /control/reset       forgets everything
func (s *Server) control(mux *http.ServeMux) {
	mux.HandleFunc("POST /control/script", func(w http.ResponseWriter, r *http.Request) {
		var replies []Reply
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields() // a misspelt script must not silently be another one
		if err := d.Decode(&replies); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.Script(replies...)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /control/open", func(w http.ResponseWriter, r *http.Request) {
		s.Open(r.URL.Query().Get("gate"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /control/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /control/requests", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, s.Requests())
	})
	mux.HandleFunc("GET /control/waiting", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, s.Waiting(r.URL.Query().Get("gate")))
	})
}
