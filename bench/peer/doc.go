// Package peer has the systems that tarry is compared with, each as a scenario.System.
package peer
