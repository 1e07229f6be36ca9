# SPDX-License-Identifier: Apache-2.0
"""A few random kills: the quick form of test_slow_kill.py."""
# ctest: timeout 240
import kill_rig

kill_rig.run(6)
