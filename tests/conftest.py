"""For all tests: signals as a terminal has them."""

from __future__ import annotations

import signal

# nohup and background jobs ignore these signals, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
