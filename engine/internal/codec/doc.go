// Package codec writes what engines keep of a message as bytes: its content and its
// policy, and the numbers and texts around them. docs/formats has each form byte by
// byte. What is empty comes back as nil.
package codec
