# SPDX-License-Identifier: Apache-2.0
"""kill -9 of supervisor and worker at random moments: everything that was in the journal stays, resume completes the file."""
import os, random, signal, time

from fault_rig import Folder, VISIT, check, frames, visits_of, whole_file

VISITS = 3 * 5  # rounds x (4 points and the control)


def kill_group(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.communicate()


def imported(f, journal, n):
    """The journal, carried elsewhere, becomes a file of what it holds; nothing is overwritten."""
    copy = f.path / "carried.journal"
    copy.write_bytes(journal)
    code, out, err = f.run("import-journal", str(copy))
    check(code == 0 and out.strip().endswith("carried.h5"), "import-journal", code, out, err)
    check(len(visits_of(f.path / "carried.h5")[0]) == n, "imported visits")
    code, out, err = f.run("import-journal", str(copy))
    check(code == 2 and "never overwritten" in err, "import-journal over a result", code, err)
    (f.path / "carried.h5").unlink()


def once(rng, moment):
    with Folder() as f:
        p = f.start()
        begin, seen = time.monotonic(), (0, 0)
        while time.monotonic() - begin < moment and p.poll() is None:
            kinds, size = frames(f.journal)
            seen = (kinds.count(VISIT), size)
            time.sleep(0.002)
        before = f.journal.read_bytes()[: seen[1]] if f.journal.exists() else b""
        kill_group(p)
        check(not list(f.path.glob("*.h5")) or whole_file(f.h5), "a half-written file under its final name")
        if not f.journal.exists():  # killed before the journal was made, or after the run was complete
            code, out, err = f.resume() if f.h5.exists() else f.run()
            check(code == 0, "run", code, err)
        else:
            kinds, _ = frames(f.journal)
            after = f.journal.read_bytes()
            check(kinds.count(VISIT) >= seen[0], "visits were lost:", kinds.count(VISIT), "<", seen[0])
            check(after.startswith(before), "the journal's beginning changed")
            if not kinds:  # not even the head: nothing was measured, a new run starts afresh
                f.journal.unlink()
                code, out, err = f.run()
            else:
                if kinds.count(VISIT):
                    imported(f, after, kinds.count(VISIT))
                code, out, err = f.resume()
            check(code == 0, "resume", code, err)
        visits, states = visits_of(f.h5)
        check(len(visits) == len(set(visits)) == VISITS, "visits", visits)
        check(set(states) == {"ok"}, "states", states)
        check(whole_file(f.h5) == "yes", "not complete", whole_file(f.h5), moment, seen, out, err)
        check(not f.journal.exists(), "the journal of a complete run stays behind")


def run(times):
    seed = int(os.environ.get("BENCH_SEED", time.time_ns() % 10**9))
    rng = random.Random(seed)
    print("seed", seed, flush=True)
    with Folder() as f:  # how long an undisturbed run takes here
        begin = time.monotonic()
        code, out, err = f.run()
        check(code == 0, err)
        whole = time.monotonic() - begin
        check(len(visits_of(f.h5)[0]) == VISITS, "plan")
    for i in range(times):
        once(rng, rng.uniform(0, whole * 1.05))
    print(times, "kills survived")
