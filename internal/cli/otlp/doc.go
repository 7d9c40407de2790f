// Package otlp exports OpenTelemetry spans in JSON: to a collector by OTLP over HTTP, or to a
// file. OpenTelemetry's own exporters would link gRPC and protobuf.
//
// The encoding is that of https://opentelemetry.io/docs/specs/otlp.
package otlp
