#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the lab tests (test_*.py beside this file; names as arguments choose some), one line PASS, FAIL
or SKIP each, and as the last line `labs: N passed, N failed, N skipped`. Exit 1 if any failed.
`-j N`: N classes at a time, each in a process of its own (labs mostly wait); a class with ALONE = True
runs after the others, by itself."""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
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


SUMMARY = re.compile(r"^labs: (\d+) passed, (\d+) failed, (\d+) skipped")


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def collect(wanted):
    """{class: its tests' names}, in the order of the files."""
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    for path in sorted(HERE.glob("test_*.py")):
        if not wanted or any(w.split(".")[0] == path.stem for w in wanted):
            names = [w for w in wanted if w.split(".")[0] == path.stem and "." in w]
            suite.addTests([loader.loadTestsFromNames(names or [path.stem])])
    classes = {}
    for test in tests_of(suite):
        classes.setdefault(type(test), []).append(test)
    return classes


def run_here(classes):
    result = Result()
    for tests in classes.values():
        unittest.TestSuite(tests).run(result)
    return result.passed, result.failed, result.skipped_count


class Pool:
    """Runs classes in processes of their own, and adds up what they report."""

    def __init__(self):
        self.lock, self.children, self.totals, self.stopped = threading.Lock(), set(), [0, 0, 0], False

    def one(self, tests):
        names = [t.id() for t in tests]
        with self.lock:
            if self.stopped:
                return
            child = subprocess.Popen([sys.executable, __file__, *names], stdout=subprocess.PIPE, text=True)
            self.children.add(child)
        found = None
        for line in child.stdout:
            match = SUMMARY.match(line)
            found = match or found
            if not match:
                with self.lock:
                    print(line, end="", flush=True)
        child.wait()
        with self.lock:
            self.children.discard(child)
            if found and any(int(n) for n in found.groups()):
                self.totals = [a + int(b) for a, b in zip(self.totals, found.groups())]
            else:
                self.totals[1] += 1
                print(f"FAIL {names[0].rsplit('.', 1)[0]}: ended without a result", flush=True)

    def work(self, queue):
        while True:
            with self.lock:
                if not queue:
                    return
                tests = queue.pop(0)
            self.one(tests)

    def run(self, classes, jobs):
        queue = [tests for kind, tests in classes.items() if not getattr(kind, "ALONE", False)]
        alone = [tests for kind, tests in classes.items() if getattr(kind, "ALONE", False)]
        # What takes longest comes first, as far as the number of tests tells.
        queue.sort(key=len, reverse=True)
        workers = [threading.Thread(target=self.work, args=(queue,)) for _ in range(jobs)]
        try:
            for w in workers:
                w.start()
            for w in workers:
                w.join()
            for tests in alone:
                self.one(tests)
        except KeyboardInterrupt:
            with self.lock:
                self.stopped = True
                queue.clear()
                for child in self.children:
                    child.send_signal(signal.SIGTERM)  # each takes its own labs down
            for w in workers:
                w.join()
            raise
        return tuple(self.totals)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-j", type=int, default=1, metavar="N", dest="jobs")
    parser.add_argument("tests", nargs="*", metavar="module[.Class[.test]]")
    arguments = parser.parse_args()
    if os.geteuid():
        print("labs: 0 passed, 0 failed, 1 skipped (needs root)")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    classes = collect(arguments.tests)
    # What could not be loaded is a class of unittest's own, which no other process can be asked for.
    strange = {kind: tests for kind, tests in classes.items() if kind.__module__.startswith("unittest")}
    if arguments.jobs > 1 and not strange:
        counts = Pool().run(classes, arguments.jobs)
    else:
        counts = run_here(classes)
    print("labs: {} passed, {} failed, {} skipped".format(*counts))
    return 1 if counts[1] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
