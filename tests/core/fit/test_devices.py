"""Devices are found by name, and numbers arrive there and come back."""

import importlib.util

import numpy as np
import pytest

from covey.core.fit.devices import DOUBLE, PROCESSOR, find_device
from covey.errors import MissingExtraError, ParameterError


def test_devices_are_found_by_name():
    assert find_device("cpu") is PROCESSOR
    for name in ("gpu", "torch", "", "cupy:0", 3):
        with pytest.raises(ParameterError, match="device must be"):
            find_device(name)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is here")
def test_a_missing_library_names_its_extra():
    with pytest.raises(MissingExtraError, match=r"covey\[gpu\]"):
        find_device("torch:cpu")
    if importlib.util.find_spec("cupy") is None:
        with pytest.raises(MissingExtraError, match=r"covey\[gpu\]"):
            find_device("cuda")


def test_numbers_travel_in_single_precision_and_come_back(device):
    there = device.put(np.array([[1 / 3, 2.0], [-1.0, 0.0]]))
    assert device.get(there) == pytest.approx(np.array([[1 / 3, 2.0], [-1.0, 0.0]]), rel=1e-7)
    assert device.get(there).dtype == np.float64
    assert device.get32(device.single(there)).dtype == np.float32
    assert device.get(device.sigmoid(there)) == pytest.approx(1 / (1 + np.exp(-device.get(there))), rel=1e-6)


def test_what_is_fitted_is_in_the_precision_of_the_device(device):
    third = np.array([1 / 3])
    assert DOUBLE.vector(third)[0] == 1 / 3
    assert device.get(device.vector(third))[0] != 1 / 3
