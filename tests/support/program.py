# SPDX-License-Identifier: Apache-2.0
"""The program under test, what it ends with, and a test that ends with a sentence; for the tests in Python."""
import os
import subprocess
import sys


def needed():
    """The path of the program, which BENCH names; where it names none the test is skipped."""
    path = os.environ.get("BENCH", "")
    if not path or not os.access(path, os.X_OK):
        print("SKIPPED: BENCH names no program")
        sys.exit(77)
    return path


def check(condition, *words):
    if not condition:
        sys.exit("FAILED: " + " ".join(map(str, words)))


def run(*words, code=0, **options):
    """What a command said that ends with this code."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    check(done.returncode == code, words, "ended with", done.returncode, "and not", code, done.stdout, done.stderr)
    return done
