"""The limits of this district."""

from __future__ import annotations

SCREENSHOT_BYTES = 2_000_000
SCREENSHOT_SIDE = 8_192
CAPABILITIES_BYTES = 2_000
SNIPPET_BYTES = 64_000
STEP_NAME_CHARACTERS = 200
AGENT_CHARACTERS = 200
SELECTOR_CHARACTERS = 1_000
# Failures after which a correction is disabled, and the number of sellers whose equal verdicts on
# it apply to all.
CORRECTION_FAILURES = 3
SELLERS_TO_SHARE = 3
# The most corrections of one step that are read, newest first; older ones do not matter.
CORRECTIONS_READ = 500

TASKS_CLAIMED = 10

CYCLES_PER_PAGE_MOST = 100
TASKS_PER_PAGE = 50
TASKS_PER_PAGE_MOST = 200
TASK_RESULT_BYTES = 100_000

RELEASE_BYTES = 500_000_000
RELEASE_NAME_CHARACTERS = 100
