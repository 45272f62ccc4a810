"""Every kind of array that a fit may run on."""

import array_api_strict
import pytest

from covey.engine.fit.devices import PROCESSOR, Device, find_device
from covey.errors import MissingExtraError, ParameterError

STRICT = Device("strict", array_api_strict)


@pytest.fixture(params=[PROCESSOR, STRICT, "torch:cpu", "cuda"], ids=["numpy", "strict", "torch", "cuda"])
def device(request):
    if isinstance(request.param, Device):
        return request.param
    try:
        return find_device(request.param)
    except (MissingExtraError, ParameterError) as error:
        pytest.skip(str(error))
