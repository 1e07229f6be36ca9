# SPDX-License-Identifier: Apache-2.0
"""kill -9 of everything at 50 random moments."""
import kill_rig

kill_rig.run(50)
