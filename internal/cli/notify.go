package cli

import (
	"log/slog"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notified reports whether systemd wants to be told how the service stands.
func notified() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// notify tells systemd how the service stands, as sd_notify(3) has it; without systemd it
// does nothing.
func notify(logger *slog.Logger, states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		logger.Warn("systemd cannot be told how the service stands", "error", err)
	}
}

func notifyReady(logger *slog.Logger) { notify(logger, daemon.SdNotifyReady, "STATUS=serving") }

// notifyReloading tells that files are read again; notifyReady is to follow.
func notifyReloading(logger *slog.Logger) {
	notify(logger, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}
