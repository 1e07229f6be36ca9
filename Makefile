# SPDX-License-Identifier: Apache-2.0
# Habits of the hand; CMake does the work. CONTRIBUTING says more.
all:
	./bench --build
check:
	./test
seeds:
	python3 tools/make_seeds.py
check-seeds:
	tools/check_seeds.sh
lint:
	tools/lint.sh
bench:
	tools/bench.sh
bench-%:
	tools/bench.sh $*
gpu-bundle:
	tools/gpu-bundle.sh
docs:
	./bench docs docs
	python3 tools/cuda_bounds.py --write
clean:
	rm -rf build
.PHONY: all check seeds check-seeds lint bench gpu-bundle docs clean
