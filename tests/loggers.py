"""Gives every module a new logger: one that was used keeps the configuration of that time, which
neither `capture_logs` nor a new configuration changes.
"""

import sys

import pytest
import structlog


def renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [
        module
        for name, module in sys.modules.items()
        if name.startswith("cardsync.") and hasattr(module, "log")
    ]
    assert len(ours) > 3
    for module in ours:
        monkeypatch.setattr(module, "log", structlog.get_logger(module.__name__))
