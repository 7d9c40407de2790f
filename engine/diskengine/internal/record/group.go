package record

import (
	"fmt"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Group is the kind of the entries of the log that hold records.
const Group byte = 1

// The kinds of records.
const (
	kindPush byte = iota + 1
	kindPut
	kindMove
	kindLease
	_ // 5, 6, 12 and 13 were of earlier releases
	_
	kindGone
	kindFinish
	kindName
	kindConfigure
	kindPause
	_
	_
	kindList
	kindUnlist
	kindEnd
)

// Applier applies records. Its methods are called in the order of the log. A record, and the
// bytes in it, are only to be read, and only until the method returns.
type Applier interface {
	Put(*Put) error
	Move(*Move) error
	Lease(*Lease) error
	Gone(*Gone) error
	Finish(*Finish) error
	List(*List) error
	Name(*Name) error
	Configure(*Configure) error
	Pause(*Pause) error
}

// Each gives the records of an entry of the log to an Applier until that returns an error. It
// returns vfs.ErrVersion for an entry or a record of an unknown kind, and codec.ErrMalformed for
// bytes that are no record. The records before it have been given by then.
func Each(kind byte, b []byte, to Applier) error {
	if kind != Group {
		return fmt.Errorf("%w (kind %d of entries)", vfs.ErrVersion, kind)
	}
	var d decoder
	d.in.B = b
	for len(d.in.B) > 0 {
		at := len(b) - len(d.in.B)
		if err := d.one(to); err != nil {
			return fmt.Errorf("byte %d of an entry of the log: %w", at, err)
		}
	}
	return nil
}

// decoder has one record of each frequent kind, so that decoding allocates little.
type decoder struct {
	in     codec.Reader
	put    Put
	move   Move
	lease  Lease
	gone   Gone
	finish Finish
	list   List
}

func (d *decoder) one(to Applier) error {
	in := &d.in
	switch kind := in.Byte(); kind {
	case kindPush, kindPut:
		d.put.read(in, kind)
		return given(in, &d.put, to.Put)
	case kindMove:
		d.move.read(in)
		return given(in, &d.move, to.Move)
	case kindLease:
		d.lease.read(in)
		return given(in, &d.lease, to.Lease)
	case kindGone, kindUnlist:
		d.gone.read(in, kind)
		return given(in, &d.gone, to.Gone)
	case kindFinish:
		d.finish.read(in)
		return given(in, &d.finish, to.Finish)
	case kindList:
		d.list.read(in)
		return given(in, &d.list, to.List)
	case kindName:
		n := new(Name)
		n.read(in)
		return given(in, n, to.Name)
	case kindConfigure:
		c := new(Configure)
		c.read(in)
		return given(in, c, to.Configure)
	case kindPause:
		p := new(Pause)
		p.read(in)
		return given(in, p, to.Pause)
	default:
		return fmt.Errorf("%w (kind %d of records)", vfs.ErrVersion, kind)
	}
}

// given passes a record on, unless it could not be decoded.
func given[R any](in *codec.Reader, r *R, to func(*R) error) error {
	if in.Err != nil {
		return in.Err
	}
	return to(r)
}
