"""Events read by the kernel: what it takes, the decoder takes alike, to the last bit."""

from __future__ import annotations

import random
import struct
from typing import Any

import msgspec
import pytest

from hinged.kernel import is_compiled, read_events
from hinged_service.wire.events import Event, Question
from tests.fuzz.budget import ASKED, SEED
from tests.fuzz.damage import PIECES

pytestmark = pytest.mark.skipif(not is_compiled, reason="nothing is read in Python")

USUAL = 40_000
_DECODERS = {kind: msgspec.json.Decoder(list[kind]) for kind in (Event, Question)}  # type: ignore[valid-type]
SPACES = ["", "", "", "", " ", "\n", "\t \r"]
NAMES = ["a", "b", "x", "id", "", "é", "☃", "😀", "\x7f", "a" * 35, "a" * 36, "b" * 37, "x" * 255]
NAMES += ["x" * 256, "é" * 256, "😀" * 256, *(f"feature_{n}" for n in range(40))]
LABELS = ["true", "false", "0", "1", "-1", "-0", "17", '"spam"', '"ham"', '"é"', '""', '"x y"']
LABELS += ["999999999999999999", "-99999999999999999", "9" * 25]
ODD_NUMBERS = [
    "0",
    "-0",
    "-0.0",
    "0.0",
    "-0e5",
    "1e100",
    "1.0000000000000002e100",
    "1e101",
    "1e-400",
    "1.8446744073709551616",  # without the point 2^64, as many digits as are read at once and one
    "0.036893488147419103232000",
]
ODD_NUMBERS += ["2.2250738585072011e-308", "5e-324", "9007199254740993", "18446744073709551616"]
ODD_NUMBERS += ["9" * 19, "9" * 20, "9" * 99, "0." + "0" * 30 + "1", "1" + "0" * 50, "1E+2", "1e-5"]
ODD_NUMBERS += ["0.1e1", "00", "1.", ".5", "+1", "1e", "0x1", "NaN", "1_0", "9007199254740992.5"]
ODD_NUMBERS += ["9007199254740993.00000000000000000001", "0" * 3 + "1", "1" + "0" * 420, "123e0"]


def number(draw: random.Random) -> str:
    """Return the text of a number: short or long, of any double, or next to half of one."""
    match draw.randrange(9):
        case 0:
            return draw.choice(ODD_NUMBERS)
        case 1:
            return repr(struct.unpack("d", draw.randbytes(8))[0])
        case 2:
            return repr(draw.uniform(-1, 1))
        case 3:
            return str(draw.getrandbits(draw.randrange(1, 70)))
        case 4:
            return f"{draw.getrandbits(64)}e{draw.randrange(-45, 45)}"
        case 5:  # halfway between two doubles, or one digit beside it
            half = (draw.getrandbits(53) | 1 << 52) * 2 + 1
            return f"{half + draw.choice([0, 0, -1, 1])}.{draw.choice(['0', '5', '000001'])}"
        case 6:
            return f"-{draw.getrandbits(40)}.{draw.getrandbits(40)}"
        case _:
            return str(round(draw.gauss(0, 1), 6))


def event(draw: random.Random, names: list[str], labelled: bool) -> str:
    """Return the text of an event."""

    def joined(parts: list[str]) -> str:
        return f",{draw.choice(SPACES)}".join(parts)

    x = joined([f'"{name}":{draw.choice(SPACES)}{number(draw)}' for name in names])
    fields = [f'"x"{draw.choice(SPACES)}:{{{x}}}']
    if labelled:
        fields.append(f'"y":{draw.choice(LABELS)}')
        if draw.random() < 0.2:
            fields.append(f'"w":{draw.choice(["1", "0", "2.5", "-1", "1e101", "-0.0", "0.1"])}')
    if draw.random() < 0.2:
        fields.append(f'"id":{draw.choice(LABELS[7:12])}')
    if draw.random() < 0.3:
        draw.shuffle(fields)
    return f"{{{draw.choice(SPACES)}{joined(fields)}{draw.choice(SPACES)}}}"


def document(draw: random.Random, labelled: bool) -> bytes:
    """Return an array of events, some with the names of the one before, and maybe damaged."""
    names: list[str] = []
    texts = []
    for _ in range(draw.randrange(1, 5)):
        match draw.randrange(5):
            case 0 | 1:
                names = draw.sample(NAMES, draw.randrange(8))
            case 2:
                names = names[: draw.randrange(len(names) + 1)]
            case 3:
                names = [*names, draw.choice(NAMES)]
        texts.append(event(draw, names, labelled))
    body = bytearray(f"[{draw.choice(SPACES)}{','.join(texts)}]".encode())
    while draw.random() < 0.4:
        at = draw.randrange(len(body) + 1)
        what = draw.choice([draw.choice(PIECES), draw.randbytes(1), bytes(body[at : at + 9])])
        body[at : at + draw.choice([0, 1, 1, 2, 5])] = what
    return bytes(body)


def text_of(event: Any) -> str:
    """Return all that an event is, signs of zeros and types included."""
    return repr([list(event.x.items()), *msgspec.structs.astuple(event)[1:]])


@pytest.mark.parametrize("kind", [Event, Question])
def test_what_is_read_is_what_is_decoded(kind: type[Event] | type[Question]) -> None:
    draw, decode, taken = random.Random(f"{SEED} {kind}"), _DECODERS[kind].decode, 0
    count = (ASKED or USUAL) // 2
    for number in range(count):
        body = document(draw, kind is Event)
        if number % 4 == 0:
            body += b" " * 2**14  # so long a text is read without the interpreter's lock
        read = read_events(body, kind, kind is Event)
        if read is not None:
            taken += 1
            assert list(map(text_of, read)) == list(map(text_of, decode(body))), body
    assert taken > count // 10


@pytest.mark.parametrize("text", [n for n in ODD_NUMBERS if n[0] != "0" or n[1:2] == "."])
def test_a_text_that_ends_early_is_not_read(text: str) -> None:
    body = f'{{"x":{{"abc":{text},"é":1}},"y":true,"w":2,"id":"e"}}'.encode()
    for end in range(len(body)):
        assert read_events([body[:end]], Event, True) is None
        assert read_events(b"[" + body[:end], Event, True) is None
