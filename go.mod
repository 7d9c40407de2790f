module github.com/tarryhq/tarry

go 1.26.0
