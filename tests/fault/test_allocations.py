# SPDX-License-Identifier: Apache-2.0
"""A few failing allocations: the quick form of test_slow_allocations.py."""
import allocation_rig

allocation_rig.run(7)
