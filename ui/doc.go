// Package ui is the dashboard: pages that show what is coming, what is late and what
// died, and let viewers with the rights act on it. A Handler serves the pages and what they
// are made of, and hands the calls of the API below its own path to another handler, such
// as a server.Server, so that one line puts the dashboard into a program of one's own:
//
//	mux.Handle("/tarry/", http.StripPrefix("/tarry", ui.New(server.New(client, nil), nil)))
//
// What a viewer may do is for the API to decide: where it asks for tokens, a viewer logs
// in with one, and the Handler keeps it in memory as long as the session lasts. Browsers
// get nothing but a cookie that scripts cannot read. See docs/dashboard.md.
//
// The pages are built from the sources in web by make ui; what is built lies in dist and
// is part of the package, so that a program that imports it needs no Node.
package ui
