import ast
from pathlib import Path

import numpy as np
from randomgen import ChaCha

import covey
from covey.entropy import Streams


def test_the_cryptographic_stream_is_chacha20():
    """The first block for the zero key and counter, as published with the cipher."""
    block = np.array(ChaCha(key=0, counter=0).random_raw(2)).tobytes().hex()
    assert block == "76b8e0ada0f13d90405d6ae55386bd28"


def test_streams_differ_by_purpose_and_agree_by_seed():
    one, two = Streams.from_seed(1), Streams.from_seed(1)
    assert one.noise("a").random() == two.noise("a").random()
    draws = [
        one.noise("a"),
        one.noise("b"),
        one.postprocessing("a"),
        one.child("a").noise("a"),
        Streams.from_seed(2).noise("a"),
        Streams.from_system().noise("a"),
    ]
    assert len({g.random() for g in draws}) == len(draws)


def test_system_keys_differ_and_are_not_shown():
    one = Streams.from_system()
    assert one.key != Streams.from_system().key
    assert len(one.key) == 32
    assert "key" not in repr(one)
    assert not one.seeded


PUBLIC = {"public", "make_public", "postprocessing"}
NOISY = {"measure", "joint", "cube", "matrix", "signs", "choose", "directions", "select", "noise"}


def names_of_streams(source):
    """Names that a program asks for as post-processing, and those under which a gate draws noise."""
    found = {True: set(), False: set()}
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
            asked = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if asked in PUBLIC | NOISY and isinstance(call.args[0].value, str):
                found[asked in PUBLIC].add(call.args[0].value)
    return found[True], found[False]


def test_no_stream_of_post_processing_is_seeded_with_the_key_of_noise():
    """One name has one key, for both kinds of stream: whoever found the state of the fast one would know of the other's."""
    both = [names_of_streams(path.read_text(encoding="utf-8")) for path in Path(covey.__file__).parent.rglob("*.py")]
    public, noisy = (set().union(*names) for names in zip(*both, strict=True))
    assert {"fit", "rows", "decode"} < public
    assert {"events", "margins", "tables", "pairs", "certificate"} < noisy
    assert not public & noisy
    wrong = 'gate.measure("events", exact, 3, moves)\ndenoise(public("events"))'
    assert set.intersection(*names_of_streams(wrong)) == {"events"}
