// Package measure runs one part of the page of benchmarks on one system: see the command page,
// which starts it in a process of its own for each. The servers that it starts are its
// children, so their processor time counts.
package measure
