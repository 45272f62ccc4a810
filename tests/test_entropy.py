import numpy as np
from randomgen import ChaCha

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
