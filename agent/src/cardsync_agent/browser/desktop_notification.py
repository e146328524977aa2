"""Shows a notification on the seller's desktop, with the system's own program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

_WITHIN = 10.0
# The texts are passed as variables and arguments, so that nothing in them can become a command.
_POWERSHELL = """
Add-Type -AssemblyName System.Windows.Forms, System.Drawing
$icon = New-Object System.Windows.Forms.NotifyIcon
$icon.Icon = [System.Drawing.SystemIcons]::Information
$icon.Visible = $true
$icon.ShowBalloonTip(10000, $env:CARDSYNC_TITLE, $env:CARDSYNC_TEXT, 'Info')
Start-Sleep -Seconds 5
$icon.Dispose()
"""
_OSASCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def notify(title: str, text: str, platform: str = sys.platform) -> bool:
    """Show a notification and return whether it was shown; a failure never ends the
    caller's work.
    """
    command, environ = _command(title, text, platform), dict(os.environ)
    program = shutil.which(command[0])
    if program is None:
        return False
    environ |= {"CARDSYNC_TITLE": title, "CARDSYNC_TEXT": text}
    try:
        ended = subprocess.run(
            [program, *command[1:]], env=environ, timeout=_WITHIN, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


def _command(title: str, text: str, platform: str) -> list[str]:
    if platform == "win32":
        return ["powershell", "-NoProfile", "-NonInteractive", "-Command", _POWERSHELL]
    if platform == "darwin":
        lines = [part for line in _OSASCRIPT for part in ("-e", line)]
        return ["osascript", *lines, title, text]
    return ["notify-send", "--app-name=cardsync-agent", "--", title, text]
