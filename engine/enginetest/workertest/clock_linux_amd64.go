package workertest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// canShift reports whether setClock works.
const canShift = true

// setClock shifts the wall clock of this process for good. The monotonic clock is unchanged.
// libfaketime cannot do this: Go reads the time with code that the kernel maps into each
// process, not with a library. setClock replaces the beginning of that code with a jump to
// offTime.
func setClock(by time.Duration) error {
	was := time.Now()
	offBy = int64(by / time.Second)
	at, err := clockCode()
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	jump := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, uint64(offTimeAt())) // MOVQ $offTime, AX
	if _, err := mem.WriteAt(append(jump, 0xff, 0xe0), at); err != nil {              // JMP AX
		return err
	}
	is := time.Now()
	if d := is.Round(0).Sub(was.Round(0)) - is.Sub(was); (d - time.Duration(offBy)*time.Second).Abs() > time.Second {
		return fmt.Errorf("the clock is off by %v, not %v", d, by)
	}
	return nil
}

// clockCode is the address of the kernel's code for clock_gettime.
func clockCode() (int64, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		var begin, end int64
		if _, err := fmt.Sscanf(line, "%x-%x", &begin, &end); err != nil {
			return 0, err
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return 0, err
		}
		defer mem.Close()
		image := make([]byte, end-begin)
		if _, err := mem.ReadAt(image, begin); err != nil {
			return 0, err
		}
		file, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, err
		}
		symbols, err := file.DynamicSymbols()
		for _, s := range symbols {
			if s.Name == "__vdso_clock_gettime" {
				return begin + int64(s.Value), nil
			}
		}
		return 0, errors.Join(errors.New("the kernel's code has no clock_gettime"), err)
	}
	return 0, errors.New("the kernel maps no code for the time")
}

// offBy is how many seconds offTime adds.
var offBy int64

// offTimeAt returns the address of offTime. offTime is clock_gettime in C's calling
// convention, with a shifted wall clock.
func offTimeAt() uintptr
