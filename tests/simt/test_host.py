"""What host code calls: arrays on the device, and decorators and options that refuse what they cannot use."""

import numpy as np
import pytest

from tilelab.simt import LaunchError, UnsupportedError, cuda, float32, int16

DTYPES = [np.float32, "float32", "f4", np.dtype("f4"), float32, int16, np.int16, "i2", bool, int, float]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("make", [cuda.device_array, cuda.pinned_array, cuda.mapped_array])
def test_dtypes_of_arrays(make, dtype):
    made = make((2, 3), dtype)
    assert made.shape == (2, 3)
    assert made.dtype == np.dtype(str(dtype) if dtype in (float32, int16) else dtype)


def test_there_and_back():
    host = np.arange(6.0).reshape(2, 3)
    there = cuda.to_device(host, stream=cuda.stream())
    there[0, 0] = 7
    assert host[0, 0] == 0
    assert type(there.copy_to_host()) is np.ndarray
    back = np.empty_like(host)
    assert there.copy_to_host(back) is back
    assert back[0, 0] == 7
    like = cuda.device_array_like(there)
    like.copy_to_device(host)
    assert like.copy_to_host().tolist() == host.tolist()


def test_streams():
    with cuda.pinned(np.zeros(3)), cuda.stream().auto_synchronize() as stream:
        stream.synchronize()
    cuda.default_stream().synchronize()


@pytest.mark.parametrize("given", [3, np.sin, object()])
def test_no_function(given):
    with pytest.raises(UnsupportedError, match=r"put @cuda\.jit above a function that is written with def"):
        cuda.jit(given)
    with pytest.raises(UnsupportedError, match="is no function of Python"):
        cuda.jit()(given)


def test_a_lambda_in_one_line():
    # fmt: off
    try: cuda.jit(lambda o: o)  # noqa: E701
    except UnsupportedError as refused: assert "written with def" in str(refused)  # noqa: E701, PT017
    # fmt: on


@cuda.jit
def nothing(o):
    o[0] = 1


def test_options():
    for name in ("checks", "progress"):
        with pytest.raises(LaunchError, match=f"{name}='no': use True or False"):
            cuda.simulate(nothing, **{name: "no"})
    with pytest.raises(LaunchError, match="seed=1 with engine='lanes'"):
        cuda.simulate(nothing, seed=1, engine="lanes")
    cuda.simulate(nothing, checks=np.bool_(False), seed=1)[1, 1](np.zeros(1))


@cuda.jit
def one_of_two(o):
    a = cuda.local.array(2, float32)
    b = cuda.local.array(2, float32)
    a[0] = 1
    b[0] = 2
    c = a if cuda.threadIdx.x else b
    o[cuda.threadIdx.x] = c[0]


def test_why_lanes_cannot():
    with pytest.raises(LaunchError, match="needs engine='threads': a is one local array in some threads and another"):
        cuda.simulate(one_of_two, engine="lanes")[1, 4](np.zeros(4))
