package main

import (
	"errors"
	"net/http"

	"github.com/tarryhq/tarry"
)

// routes returns the shop's HTTP handler.
func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusCreated, s.place(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("POST /orders/{id}/payment", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNoContent, s.pay(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		state, err := s.state(r.Context(), r.PathValue("id"))
		if err != nil {
			answer(w, 0, err)
			return
		}
		_, _ = w.Write([]byte(state + "\n")) // the client may have gone
	})
	return mux
}

// answer answers with a status, or an error.
func answer(w http.ResponseWriter, status int, err error) {
	switch {
	case err == nil:
		w.WriteHeader(status)
	case errors.Is(err, errNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errExists), errors.Is(err, errNotOpen):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, tarry.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
