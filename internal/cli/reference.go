package cli

import (
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

// refArg is the argument KEY of commands on one message, with the flag --id that makes it an
// id. "--id 42", "42 --id" and "--id=42" mean the same.
type refArg struct{ id idValue }

// idValue is the value of a flag that may be given without one.
type idValue struct {
	given bool
	value string // "" when left out
}

func (v *idValue) String() string { return v.value }
func (v *idValue) Type() string   { return "id" }

func (v *idValue) Set(s string) error {
	v.given = true
	if s != asArgument {
		v.value = s
	}
	return nil
}

// asArgument is the value of --id when the id is the next argument; help shows it.
const asArgument = "the argument"

func (r *refArg) add(cmd *cobra.Command) {
	f := cmd.Flags().VarPF(&r.id, "id", "", "name the message by its id instead of its key")
	f.NoOptDefVal = asArgument
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		names := []string{"QUEUE", "KEY"}
		if r.id.given {
			names[1] = "the id"
		}
		if r.id.value != "" {
			names = names[:1]
		}
		most := len(names)
		if cmd.Annotations["body"] != "" {
			most++
		}
		return checkArgs(cmd, len(args), names, most)
	}
}

// ref returns the message that the arguments after QUEUE name, and the remaining arguments.
func (r *refArg) ref(args []string) (ref tarry.Ref, rest []string, err error) {
	if !r.id.given {
		return tarry.ByKey(args[0]), args[1:], nil
	}
	s := r.id.value
	if s == "" {
		s, args = args[0], args[1:]
	}
	id, err := tarry.ParseID(s)
	if err != nil {
		return tarry.Ref{}, nil, usagef("an id is a decimal number such as 42", "%q is not an id", s)
	}
	return tarry.ByID(id), args, nil
}

// refText returns the name of a message for people.
func refText(ref tarry.Ref) string {
	if ref.ID != 0 {
		return "id " + ref.ID.String()
	}
	return ref.Key
}
