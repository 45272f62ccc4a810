import ast
from pathlib import Path

import numpy as np
from randomgen import ChaCha

import covey
from covey.engine.entropy import Streams


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
GATE = {"measure", "joint", "cube", "knorm", "matrix", "signs", "choose", "pick", "directions", "select", "noise"}
PLACES = {"measure_trees": 2}  # arguments that are passed on as the name of what is asked
NOISY = GATE | {"Ask", *PLACES}  # what a model asks for, the gate draws under the same name


def constants(trees):
    """Strings by the names that modules give them, such as purposes that are spoken of in several places."""
    found = {}
    for line in [line for tree in trees for line in tree.body if isinstance(line, ast.Assign)]:
        names = [own for target in line.targets for own in ast.walk(target) if isinstance(own, ast.Name)]
        values = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value] * len(names)
        for name, value in zip(names, values, strict=False):
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.setdefault(name.id, set()).add(value.value)
    return found


def names_of_streams(*sources):
    """Names that programs ask for as post-processing, and those under which a gate draws noise."""
    trees = [ast.parse(source) for source in sources]
    found, known = {True: set(), False: set()}, constants(trees)
    for call in [call for tree in trees for call in ast.walk(tree) if isinstance(call, ast.Call)]:
        asked = getattr(call.func, "attr", getattr(call.func, "id", ""))
        first = dict(enumerate(call.args)).get(PLACES.get(asked, 0))
        if asked in PUBLIC | NOISY and isinstance(first, ast.Constant) and isinstance(first.value, str):
            found[asked in PUBLIC].add(first.value)
        elif asked in PUBLIC | NOISY and isinstance(first, ast.Name):
            found[asked in PUBLIC] |= known.get(first.id, set())
    return found[True], found[False]


def test_no_stream_of_post_processing_is_seeded_with_the_key_of_noise():
    """One name has one key, for both kinds of stream: whoever found the state of the fast one would know of the other's."""
    sources = [path.read_text(encoding="utf-8") for path in Path(covey.__file__).parent.rglob("*.py")]
    public, noisy = names_of_streams(*sources)
    assert {"fit", "rows", "decode"} < public
    assert {"events", "margins", "tables", "pairs", "certificate", "domains", "further queries", "relations"} < noisy
    assert not public & noisy
    for noise in (
        'gate.measure("events", exact, 3, sensitivity)',
        'Ask("events", parts, sensitivity)',
        "Ask(EVENTS, parts, sensitivity)",
    ):
        wrong = f'EVENTS = "events"\n{noise}\ndenoise(public("events"))'
        assert set.intersection(*names_of_streams(wrong)) == {"events"}
