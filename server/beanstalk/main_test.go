package beanstalk

import (
	"testing"

	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
