// Package ui is the dashboard. Its pages show what is coming, what is late and what died,
// and let viewers act on it if they have the rights. A Handler serves the pages, and passes
// calls of the API below its path to another handler, such as a server.Server. One line
// adds the dashboard to your own program:
//
//	mux.Handle("/tarry/", http.StripPrefix("/tarry", ui.New(server.New(client, nil), nil)))
//
// The API decides what a viewer may do. If it asks for tokens, a viewer logs in with one.
// The Handler keeps the token in memory while the session lasts; the browser gets only a
// cookie that scripts cannot read. See docs/dashboard.md.
//
// make ui builds the pages from the sources in web. The result is in dist, part of the
// package, so a program that imports it needs no Node.
package ui
