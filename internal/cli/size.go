package cli

import (
	"fmt"
	"strconv"

	"github.com/tarryhq/tarry/internal/storeurl"
)

// sizeValue is a flag for a number of bytes, with or without a unit.
type sizeValue int64

func (v *sizeValue) String() string { return strconv.FormatInt(int64(*v), 10) }
func (v *sizeValue) Type() string   { return "size" }

func (v *sizeValue) Set(s string) error {
	n, err := storeurl.ParseBytes(s)
	if err != nil {
		return fmt.Errorf("%q is not a size such as 65536, 64KiB, 256M or 2GiB", s)
	}
	*v = sizeValue(n)
	return nil
}
