# SPDX-License-Identifier: Apache-2.0
"""The table of opcodes. A builder reads one instruction once and says what it does to lanes; whatever it does not know it
refuses, so that nothing is silently skipped."""
from .parse import Unsupported

OPCODES = {}


def opcode(*names):
    """Registers a builder (frame, source, instruction) -> None, which sets instruction.act and, if it is special, .kind."""
    def register(builder):
        for name in names:
            OPCODES[name] = builder
        return builder
    return register


def typed(source, kinds, allowed=()):
    """The type, which is the last modifier, and the set of the other ones."""
    *mods, kind = source.mods or [""]
    if kind not in kinds:
        raise Unsupported("type ." + kind)
    expect(mods, allowed)
    return kind, set(mods)


def expect(mods, allowed):
    for mod in mods:
        if mod not in allowed:
            raise Unsupported("modifier ." + mod)


def no_operation(lanes):
    """What has no effect on values."""


def every_lane(lanes):
    """The mask of warp operations that are .aligned."""
    return 0xFFFFFFFF
