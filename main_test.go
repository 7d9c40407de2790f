package tarry_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(suspendedServer); url != "" {
		if err := workSuspended(url); err != nil {
			fmt.Println("run:", err)
			os.Exit(1)
		}
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // of the engines that tests let fail
	leaktest.Main(m)
}
