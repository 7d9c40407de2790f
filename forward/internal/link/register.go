package link

import (
	"net/url"

	"github.com/tarryhq/tarry/forward"
)

// Register registers a kind of target under URL schemes: parse turns a URL into a
// configuration, and open turns that into a target.
func Register[C any, T forward.Target](parse func(*url.URL, *forward.Options) (*C, error), open func(C, *forward.Options) (T, error), schemes ...string) {
	for _, scheme := range schemes {
		forward.Register(scheme, func(u *url.URL, o *forward.Options) (forward.Target, error) {
			cfg, err := parse(u, o)
			if err != nil {
				return nil, err
			}
			target, err := open(*cfg, o)
			if err != nil {
				return nil, err
			}
			return target, nil
		})
	}
}
