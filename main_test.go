package tarry_test

import (
	"log/slog"
	"testing"

	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // of the engines that tests let fail
	leaktest.Main(m)
}
