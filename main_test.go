package tarry_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(suspendedServer); url != "" {
		if err := workSuspended(url); err != nil {
			fmt.Println("run:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
