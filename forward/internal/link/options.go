package link

import (
	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// Options completes the options of a target that cannot sign. what names the target.
func Options(o *forward.Options, what string) (*forward.Options, error) {
	full, err := o.Complete()
	if err == nil && len(full.Secrets) > 0 {
		err = Invalid(what + " takes no secret; only webhooks are signed")
	}
	return full, err
}

// Invalid returns the error of a configuration; hint says what is wrong or what to do.
func Invalid(hint string) error {
	return &tarry.Error{Op: "open target", Err: tarry.ErrInvalid, Hint: hint}
}
