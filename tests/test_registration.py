# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""How operators behave inside MindSpore: modes, errors and when they come, amp, recompute, levels."""

import concurrent.futures
import os
import re
import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, amp, nn

from ms_ops_transformer import _level, _native, ops
from ms_ops_transformer.ops import _custom

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
EPSILON = 1e-5
RNG = np.random.default_rng(0)
X, GAMMA = RNG.standard_normal((4, 8, 64)).astype(np.float32), RNG.random(64).astype(np.float32)
DY = RNG.standard_normal((4, 8, 64)).astype(np.float32)


def reference(x, gamma, dy):
    """(y, dx, dgamma) in float64."""
    x, gamma, dy = (a.astype(np.float64) for a in (x, gamma, dy))
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON)
    g = dy * gamma
    dx = rstd * (g - x * rstd**2 * (g * x).mean(-1, keepdims=True))
    return x * rstd * gamma, dx, (dy * x * rstd).sum(tuple(range(x.ndim - 1)))


def rms_norm(x, gamma):
    return ops.rms_norm(x, gamma, epsilon=EPSILON)[0]


def loss(x, gamma, dy):
    return (ops.rms_norm(x, gamma, epsilon=EPSILON)[0] * dy).sum()


class Norm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.gamma = ms.Parameter(Tensor(GAMMA), name="gamma")
        self.epsilon = EPSILON  # amp O1 copies construct to another module, where globals of this one are unknown

    def construct(self, x):
        y, _ = ops.rms_norm(x, self.gamma, epsilon=self.epsilon)
        return y


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, dy):
        return (self.net(x).astype(ms.float32) * dy).sum()


def near(found, want, tolerance=2e-6):
    found = found.astype(ms.float32).asnumpy()
    assert found.shape == want.shape
    assert np.abs(found - want).max() <= tolerance * max(1, np.abs(want).max())


@MODES
def test_forward_and_gradient_in_a_cell(mode):
    ms.set_context(mode=mode)
    net = Norm()
    y, dx, dgamma = reference(X, GAMMA, DY)
    near(net(Tensor(X)), y)
    grads = ms.grad(Loss(net), 0, net.trainable_params())(Tensor(X), Tensor(DY))
    near(grads[0], dx)
    near(grads[1][0], dgamma)


@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("capture", ["ast", "bytecode", "trace"])
def test_jit(capture, level):
    def run():
        y = ms.jit(rms_norm, capture_mode=capture, jit_level=level)(Tensor(X), Tensor(GAMMA))
        jit_loss = ms.jit(loss, capture_mode=capture, jit_level=level)
        return y, ms.grad(jit_loss, (0, 1))(Tensor(X), Tensor(GAMMA), Tensor(DY))

    # In a thread of its own: tracing fails below frames without source text, as those of `python -m pytest` are.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        found, grads = pool.submit(run).result()
    y, dx, dgamma = reference(X, GAMMA, DY)
    near(found, y)
    near(grads[0], dx)
    near(grads[1], dgamma)


def test_jit_with_dynamic_shapes():
    norm = ms.jit(rms_norm, dynamic=1)
    for rows in (2, 3, 5, 8):
        near(norm(Tensor(X[:, :rows]), Tensor(GAMMA)), reference(X, GAMMA, DY)[0][:, :rows])


@pytest.mark.parametrize("shape", [[None, None, 64], [None, 8, None], None], ids=["dims", "width", "rank"])
def test_set_inputs(shape):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Norm()
    net.set_inputs(Tensor(shape=shape, dtype=ms.float32))
    y = reference(X, GAMMA, DY)[0]
    for batch in (1, 2, 4, 3):
        near(net(Tensor(X[:batch])), y[:batch])
    if shape is None:
        near(net(Tensor(X[0])), y[0])


def test_gradient_of_a_dynamic_graph():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Loss(Norm())
    net.set_inputs(Tensor(shape=[None, 8, 64], dtype=ms.float32), Tensor(shape=[None, 8, 64], dtype=ms.float32))
    for batch in (2, 4):
        x, dy = X[:batch], DY[:batch]
        _, dx, dgamma = reference(x, GAMMA, dy)
        grads = ms.grad(net, 0, net.trainable_params())(Tensor(x), Tensor(dy))
        near(grads[0], dx)
        near(grads[1][0], dgamma)


BAD = {
    "dtype": (TypeError, "dtype of 'gamma' must be float32, but got int32.", X, GAMMA.astype(np.int32)),
    "unknown dtype": (TypeError, "dtype of 'x' must be one of .*, but got float64.", X.astype(np.float64), GAMMA),
    "rank": (ValueError, "rank of 'gamma' must be .*, but got 4.", X, np.ones((2, 2, 2, 64), np.float32)),
    "dim": (ValueError, r".* of 'gamma' must be .*, but got \[63\].", X, GAMMA[:-1]),
}


@MODES
@pytest.mark.parametrize("error, text, x, gamma", BAD.values(), ids=BAD)
def test_bad_input_keeps_its_type(mode, error, text, x, gamma):
    ms.set_context(mode=mode)
    net = Call(EPSILON)
    for _ in range(2):  # nothing wrong is remembered
        with pytest.raises(error, match=f"For 'RmsNorm', {text}"):
            net(Tensor(x), Tensor(gamma))
    near(net(Tensor(X), Tensor(GAMMA)), reference(X, GAMMA, DY)[0])


class Call(nn.Cell):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def construct(self, x, gamma):
        return ops.rms_norm(x, gamma, epsilon=self.epsilon)[0]


@MODES
@pytest.mark.parametrize(
    "error, text, epsilon",
    [
        (ValueError, "'epsilon' must be >= 0, but got -1.0.", -1.0),
        (TypeError, "'epsilon' must be of type float, but got 'a'", "a"),
        (TypeError, r"'epsilon' must be of type float, but got \[1.0\] \(list\)", [1.0]),
        (TypeError, "'epsilon' must be of type float, but got {'a': 1}", {"a": 1}),
    ],
)
def test_bad_attribute_keeps_its_type(mode, error, text, epsilon):
    ms.set_context(mode=mode)
    with pytest.raises(error, match=f"For 'RmsNorm', {text}"):
        Call(epsilon)(Tensor(X), Tensor(GAMMA))


@MODES
@pytest.mark.parametrize("value, got", [(None, "None"), ([1.0, 2.0], "<class 'list'>"), ((1, 2), "<class 'tuple'>")])
def test_what_is_no_tensor(mode, value, got):
    ms.set_context(mode=mode)
    with pytest.raises(TypeError, match=f"For 'RmsNorm', 'x' must be a Tensor, but got {got}."):
        CallOn(value)(Tensor(GAMMA))


def test_attributes_that_cannot_be_hashed():
    for epsilon in ({1}, np.zeros(2)):
        with pytest.raises(TypeError, match="For 'RmsNorm', 'epsilon' must be of type float, but got"):
            ops.rms_norm(Tensor(X), Tensor(GAMMA), epsilon)
    with pytest.raises(ValueError, match="For 'RmsNorm', 'epsilon' must be finite in float32, but got 1000000"):
        ops.rms_norm(Tensor(X), Tensor(GAMMA), 10**400)


def test_none_after_a_dynamic_graph():
    """MindSpore then asks <Op>InferShape first, and crashes on a None that it was not told of."""
    ms.set_context(mode=ms.GRAPH_MODE)
    net = CallOn(Tensor(X))
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32))
    assert net(Tensor(GAMMA)).shape == X.shape
    with pytest.raises(TypeError, match="For 'RmsNorm', 'x' must be a Tensor, but got None."):
        CallOn(None)(Tensor(GAMMA))


class CallOn(nn.Cell):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def construct(self, gamma):
        return ops.rms_norm(self.x, gamma, epsilon=0.25)[0]


def test_bad_shape_of_a_dynamic_graph_comes_from_the_kernel_with_the_same_text():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Call(EPSILON)
    net.set_inputs(Tensor(shape=[None, None, None], dtype=ms.float32), Tensor(shape=[None], dtype=ms.float32))
    near(net(Tensor(X), Tensor(GAMMA)), reference(X, GAMMA, DY)[0])
    with pytest.raises(RuntimeError, match="For 'RmsNorm', .* of 'gamma' must be"):
        net(Tensor(X), Tensor(GAMMA[:-1])).asnumpy()


@MODES
def test_recompute(mode):
    ms.set_context(mode=mode)
    net = Norm()
    net.recompute()
    _, dx, dgamma = reference(X, GAMMA, DY)
    grads = ms.grad(Loss(net), 0, net.trainable_params())(Tensor(X), Tensor(DY))
    near(grads[0], dx)
    near(grads[1][0], dgamma)


@MODES
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
def test_amp(mode, level, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # O1 writes its sources there
    ms.set_context(mode=mode)
    net = amp.auto_mixed_precision(Norm(), level)
    y, dx, dgamma = reference(X, GAMMA, DY)
    near(net(Tensor(X)), y, 2e-3)
    grads = ms.grad(Loss(net), 0, net.trainable_params())(Tensor(X), Tensor(DY))
    near(grads[0], dx, 1e-2)
    near(grads[1][0], dgamma, 1e-2)


def test_non_contiguous_inputs():
    wide = Tensor(np.concatenate([X, X], axis=-1))
    near(ops.rms_norm(wide[:, ::2, 64:], Tensor(GAMMA), EPSILON)[0], reference(X, GAMMA, DY)[0][:, ::2])
    near(ops.rms_norm(Tensor(X.swapaxes(0, 1)).swapaxes(0, 1), Tensor(GAMMA), EPSILON)[0], reference(X, GAMMA, DY)[0])


@MODES
def test_no_rows(mode):
    ms.set_context(mode=mode)
    assert Call(EPSILON)(Tensor(np.zeros((0, 64), np.float32)), Tensor(GAMMA)).shape == (0, 64)


def test_one_primitive_per_set_of_attributes():
    first = _custom.primitive("rms_norm", epsilon=1e-6)
    assert first is _custom.primitive("rms_norm", epsilon=1e-6)
    other = _custom.primitive("rms_norm", epsilon=10.0)
    small = [op(Tensor(X), Tensor(GAMMA))[1].asnumpy().max() for op in (first, other, first)]
    assert small[0] == small[2] > small[1]


def test_absent_inputs_must_be_declared():
    with pytest.raises(ValueError, match="exactly the inputs that are None must be named in `absent`"):
        _custom.primitive("rms_norm", absent=("gamma",))(Tensor(X), Tensor(GAMMA))


def test_operators_in_a_chain_are_ordered():
    """Our kernels run on MindSpore's own threads of execution: no result is read before it is there."""
    x, gamma = Tensor(X), Tensor(np.ones(64, np.float32))
    for _ in range(20):
        y = x
        for _ in range(10):
            y = ops.rms_norm(y * 2.0, gamma, 0.0)[0]
        near(y, reference(X, np.ones(64), DY)[0], 1e-4)


def test_concurrent_calls_of_one_shape():
    """Each thread gets its own results: MindSpore alone gives some calls those of another thread."""
    gamma = Tensor(GAMMA)
    x = [Tensor(X + i) for i in range(6)]
    wanted = [rms_norm(t, gamma).asnumpy() for t in x]

    def wrong(i):
        return sum(not np.array_equal(rms_norm(x[i], gamma).asnumpy(), wanted[i]) for _ in range(200))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(wrong, range(6))) == 0


def _python(code, **env):
    env = {key: value for key, value in {**os.environ, **env}.items() if value is not None}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)


@pytest.mark.parametrize("level", _native.levels())
def test_every_level_runs(level):
    library = _level.library().replace(_level.level(), level)
    if not os.path.exists(library):
        pytest.fail(f"{library} is missing: python setup.py build_native --levels all")
    y, rstd = np.empty_like(X), np.empty((4, 8, 1), np.float32)
    _native.launch(library, "rms_norm", [X, GAMMA], {"epsilon": EPSILON}, [y, rstd])
    assert np.abs(y - reference(X, GAMMA, DY)[0]).max() < 1e-5


def test_level_by_environment():
    code = "from ms_ops_transformer import _level; print(_level.library())"
    found = _python(code, MS_OPS_CPU_LEVEL=_level.level()).stdout.strip()
    assert os.path.basename(found) == os.path.basename(_level.library())  # that process may take the source tree's
    wrong = _python(code, MS_OPS_CPU_LEVEL="avx1024")
    assert re.search("ImportError: MS_OPS_CPU_LEVEL must be one of .*, but got avx1024", wrong.stderr)


@pytest.mark.parametrize(
    "name, value, rule",
    [
        ("MS_OPS_BF16_ENGINE", "fast", "must be one of amx, dot, expand, but got fast"),
        ("MS_OPS_LOG", "all", "must be one of tiling, but got all"),
        ("MS_OPS_NUM_THREADS", "0", r"must be an integer in \[1, 4096\], but got '0'"),
        ("MS_OPS_NUM_THREADS", "abc", r"must be an integer in \[1, 4096\], but got 'abc'"),
    ],
)
def test_environment_is_checked_by_the_import(name, value, rule):
    wrong = _python("import ms_ops_transformer.ops", **{name: value})
    assert re.search(f"ImportError: {name} {rule}", wrong.stderr)


def test_cpu_without_avx2():
    code = (
        "from ms_ops_transformer import _native\n"
        "_native.levels = lambda: []\n"
        "from ms_ops_transformer import _level\n"
        "_level.level()\n"
    )
    assert "ImportError: ms_ops_transformer needs a CPU with AVX2, FMA and F16C." in _python(code).stderr


def test_import_time():
    code = (
        "import time, mindspore\n"
        "start = time.perf_counter()\n"
        "import ms_ops_transformer; from ms_ops_transformer import nn, ops\n"
        "print(time.perf_counter() - start)\n"
    )
    assert min(float(_python(code).stdout) for _ in range(2)) <= 0.5


def test_the_package_lists_what_it_offers():
    code = "import ms_ops_transformer as mst; from ms_ops_transformer import *; print(*dir(mst)); rms_norm, RMSNorm"
    listed = _python(code).stdout.split()
    assert {"ops", "show_config", *ops.__all__, "RMSNorm", "SwiGLU"} <= set(listed)


def test_show_config():
    out = _python("import ms_ops_transformer; ms_ops_transformer.show_config()").stdout
    assert _level.level() in out and "rms_norm" in out and "not built" not in out


def test_launch_refuses_outputs_of_another_shape():
    y = np.empty_like(X)
    with pytest.raises(ValueError, match=r"output 'rstd' must be float32\[4, 8, 1\]"):
        _native.launch(_level.library(), "rms_norm", [X, GAMMA], {"epsilon": EPSILON}, [y, np.empty(3, np.float32)])
    with pytest.raises(ValueError, match="'x' must be contiguous"):
        _native.launch(_level.library(), "rms_norm", [X[:, ::2], GAMMA], {"epsilon": EPSILON}, [y, y])
