#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the lab tests (test_*.py beside this file; names as arguments choose some), one line PASS, FAIL
or SKIP each, and as the last line `labs: N passed, N failed, N skipped`. Exit 1 if any failed."""
import os
import pathlib
import signal
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "lab")]


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = self.failed = self.skipped_count = 0
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def line(self, word, test, text=""):
        name = test.id() if hasattr(test, "id") else str(test)
        print(f"{word} {name} ({time.monotonic() - self.began:.1f} s){text}", flush=True)
        self.began = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        self.line("PASS", test)

    def fail(self, test, err):
        self.failed += 1
        text = self._exc_info_to_string(err, test)
        self.line("FAIL", test, "\n    " + text.rstrip().replace("\n", "\n    "))

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fail(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.skipped_count += 1
        self.line("SKIP", test, f": {reason}")


def main():
    if os.geteuid():
        print("labs: 0 passed, 0 failed, 1 skipped (needs root)")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    loader = unittest.TestLoader()
    wanted = sys.argv[1:]
    suite = unittest.TestSuite()
    for path in sorted(HERE.glob("test_*.py")):
        if not wanted or any(w.split(".")[0] == path.stem for w in wanted):
            names = [w for w in wanted if w.split(".")[0] == path.stem and "." in w]
            suite.addTests([loader.loadTestsFromNames(names or [path.stem])])
    result = Result()
    suite.run(result)
    print(f"labs: {result.passed} passed, {result.failed} failed, {result.skipped_count} skipped")
    return 1 if result.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
