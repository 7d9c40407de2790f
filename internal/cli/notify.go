package cli

import (
	"log/slog"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notified reports whether systemd wants to know the service's state.
func notified() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// notify tells systemd the service's state, as sd_notify(3) describes. Without systemd it does
// nothing.
func notify(logger *slog.Logger, states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		logger.Warn("systemd cannot be told how the service stands", "error", err)
	}
}

func notifyReady(logger *slog.Logger) { notify(logger, daemon.SdNotifyReady, "STATUS=serving") }

// notifyReloading tells systemd that files are being read again. notifyReady must follow.
func notifyReloading(logger *slog.Logger) {
	notify(logger, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}
