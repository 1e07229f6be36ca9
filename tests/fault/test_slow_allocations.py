# SPDX-License-Identifier: Apache-2.0
"""Failing allocations over the whole range of each command, in supervisor and workers."""
import allocation_rig

allocation_rig.run(80)
