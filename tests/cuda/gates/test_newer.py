# SPDX-License-Identifier: Apache-2.0
"""The PTX that is shipped for newer GPUs assembles for them, as their driver would do it: compute capabilities 10.0 and 12.0."""
# ctest: timeout 900
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import cuda_build  # noqa: E402
import cuda_sass  # noqa: E402

NEWER, SHIPPED = (100, 120), 90


def assemble(job):
    source, arch = job
    try:
        _, remarks = cuda_build.cubin(source, arch, SHIPPED)
    except RuntimeError as e:
        return f"{source.name} for sm_{arch}: {e}"
    return cuda_sass.resources(remarks)


try:
    cuda_build.toolkit("nvcc")
except cuda_build.Missing as missing:
    print("SKIPPED:", missing, file=sys.stderr)
    sys.exit(77)
jobs = [(source, arch) for source in cuda_build.kernel_sources() for arch in NEWER]
results = cuda_build.in_parallel(assemble, jobs)
wrong = [r for r in results if isinstance(r, str)]
for sentence in wrong:
    print("FAILED:", sentence)
counts = {arch: sum(len(r) for (_, a), r in zip(jobs, results) if a == arch and not isinstance(r, str)) for arch in NEWER}
print(", ".join(f"{n} kernels for sm_{arch}" for arch, n in counts.items()))
if len(set(counts.values())) > 1 or 0 in counts.values():
    wrong.append("kernels are missing")
    print("FAILED: not all kernels are there")
sys.exit(1 if wrong else 0)
