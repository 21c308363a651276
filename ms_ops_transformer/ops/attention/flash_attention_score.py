# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""flash_attention_score and flash_attention."""

import functools

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.ops.functional import isconstant

from ... import _native
from ...op_info import registry
from .._check import FLOAT_MAX, at_build, attribute, attributes, int64_tensor, required
from .._custom import bprop_of, primitive

_NAME = "FlashAttentionScore"
_NO_LIMIT = 2147483647
_RANK = {"BSH": 3, "SBH": 3, "BNSD": 4, "BSND": 4, "TND": 3}
_HEAD_AXIS = {"BNSD": 1, "BSND": 2, "TND": 1}
_ROW_AXIS = {"BNSD": 2, "BSND": 1, "BSH": 1, "SBH": 0}
_OPTIONAL = ("real_shift", "drop_mask", "attn_mask", "prefix", "actual_seq_qlen", "actual_seq_kvlen", "sink",
             "seed_offset", "slopes")  # fmt: skip


@bprop_of("flash_attention_score")
def _flash_attention_score_bprop(attrs):
    options = {name: value for name, value in attrs.items() if name != "absent"}
    absent = attrs["absent"]
    grad = primitive("flash_attention_score_grad", absent=absent, **options)
    has = {name: name not in absent for name in _OPTIONAL}
    has_shift, has_drop, has_mask, has_prefix = (has[name] for name in _OPTIONAL[:4])
    has_lengths, has_sink, has_seed, has_slopes = has["actual_seq_qlen"], has["sink"], has["seed_offset"], has["slopes"]

    def bprop(query, key, value, real_shift, drop_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen, sink,
              seed_offset, slopes, out, dout):  # fmt: skip
        # softmax_max carries the gradient of lse, which is softmax_max + log(softmax_sum); softmax_sum has none.
        dq, dk, dv, dreal_shift, dsink = grad(
            query, key, value, real_shift, drop_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen, sink,
            seed_offset, slopes, out[1], out[2], out[0], dout[0], dout[1])  # fmt: skip
        return (
            dq,
            dk,
            dv,
            dreal_shift if has_shift else None,
            ops.zeros_like(drop_mask) if has_drop else None,
            ops.zeros_like(attn_mask) if has_mask else None,
            ops.zeros_like(prefix) if has_prefix else None,
            ops.zeros_like(actual_seq_qlen) if has_lengths else None,
            ops.zeros_like(actual_seq_kvlen) if has_lengths else None,
            dsink if has_sink else None,
            ops.zeros_like(seed_offset) if has_seed else None,
            ops.zeros_like(slopes) if has_slopes else None,
        )

    return bprop


def _int64(name, values):
    """Lengths, prefixes or seeds as an int64 tensor, or None."""
    values = int64_tensor(_NAME, name, values)
    if isinstance(values, ms.Tensor) and values.dtype == ms.int32:
        values = ops.cast(values, ms.int64)
    return values


def _known(name, value):
    """Refuses what MindSpore would compute while the graph runs: that silently cuts the gradients of the inputs."""
    if not isconstant(value):
        raise ValueError(
            f"For '{_NAME}', '{name}' must be a number when the graph is built, but got what follows from unknown dims."
        )


@at_build
def _check_attribute(name, value, called):
    """The type of an attribute, under the name that the caller knows."""
    attribute(registry.get("flash_attention_score"), name, value, called)


@at_build
def _check_flag(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"For '{_NAME}', '{name}' must be of type bool, but got {value!r}.")


@functools.lru_cache(256)
def _check_slopes(dtype):
    """The input slopes, which callers know as real_shift."""
    if dtype != ms.float32:
        name = str(dtype).lower()
        raise TypeError(f"For '{_NAME}', dtype of 'real_shift' must be float32 with pse_type 2 or 3, but got {name}.")


def _absent(values):
    """The names of those of the optional inputs that are None."""
    names = ()
    for name, value in zip(_OPTIONAL, values):
        if value is None:
            names += (name,)
    return names


def _is_list(values):
    return isinstance(values, (list, tuple))


def _list(values):
    return tuple(values) if _is_list(values) else None


def _shapes(tensors):
    """Shape and dtype of each tensor."""
    known = ()
    for value in tensors:
        known += ((value.shape, value.dtype) if isinstance(value, ms.Tensor) else None,)
    return known


@functools.lru_cache(256)
def _check_lists(lists, tensors, **attrs):
    """Checks values that are lists at the call; those of tensors are checked when the operator runs."""
    spec = registry.get("flash_attention_score")
    inputs = [None if given is None else (given[0], str(given[1]).lower()) for given in tensors]
    names = [tensor.name for tensor in spec.inputs]
    for name, given in zip(("prefix", "actual_seq_qlen", "actual_seq_kvlen"), lists):
        if given is not None:
            inputs[names.index(name)] = np.array(given, np.int64)
    _native.infer(spec.name, inputs, attributes(spec, attrs))


def _log_sum_exp(softmax_max, softmax_sum):
    """[B, N, Sq] or [T, N]; -inf for a row that sees no key."""
    top, total = softmax_max[..., 0], softmax_sum[..., 0]
    empty = ops.logical_or(total == 0, total >= FLOAT_MAX)  # what the kernel gives a row that sees no key
    total = ops.select(empty, ops.ones_like(total), total)  # keeps infinite derivatives out of the unused branch
    return ops.select(empty, ops.full_like(top, float("-inf")), top + ops.log(total))


def flash_attention_score(query, key, value, head_num, real_shift=None, drop_mask=None, padding_mask=None,
                          attn_mask=None, prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None, keep_prob=1.0,
                          scalar_value=1.0, pre_tokens=_NO_LIMIT, next_tokens=_NO_LIMIT, inner_precise=0,
                          input_layout="BSH", sparse_mode=0, *, pse_type=1, q_start_idx=0, kv_start_idx=0, softcap=0.0,
                          sink=None, seed_offset=None, return_softmax=False, return_lse=False):  # fmt: skip
    r"""Attention without the matrix of scores, with the arguments of ``mindspore.ops.flash_attention_score``.

    .. math::
        out = Dropout(Softmax(Mask(scale \cdot (Q K^T + real\_shift)))) V

    N query heads share Nkv heads of key and value in groups of N / Nkv. The softmax is computed in float32. A row that
    sees no key gives 0, and no gradient. A score of -inf, from an infinite key, bias or slope, counts as masked.

    Args:
        query (Tensor): By `input_layout`: BSH [B, Sq, N*D], SBH [Sq, B, N*D], BNSD [B, N, Sq, D], BSND [B, Sq, N, D] or
            TND [T, N, D], sequences one after the other; float32, float16 or bfloat16.
        key (Tensor): The same with Skv rows and Nkv heads.
        value (Tensor): As `key`; its head width Dv may be another one than D. Widths from 1 to 1024.
        head_num (int): N.
        real_shift (Tensor, optional): Bias of the scores, [B, N, Sq, Skv] or 1 in any of the first three; for TND flat,
            [N, Lq, Lkv] of each sequence. With `pse_type` 2 and 3 the slopes [N] or [B, N] in float32.
        drop_mask (Tensor, optional): uint8; one bit per score in the order [B, N, Sq, Skv], lowest bit first,
            1 = keep. For TND [N, Lq, Lkv] of each sequence one after the other.
        padding_mask (None): Reserved.
        attn_mask (Tensor, optional): bool or uint8, 1 = drop: [Sq, Skv], or [B, N, Sq, Skv] or 1 in any of the first
            three. Modes 2 to 4 and 6 to 8 need none; they take the compressed 2048 x 2048 (mode 6: 3072 x 2048).
        prefix (Union[Tensor, tuple, list], optional): int64 [B], first keys of each batch that the causal rule of
            modes 5 and 6 does not drop; an `attn_mask` of mode 5 may.
        actual_seq_qlen (Union[Tensor, tuple, list], optional): For TND: int64 [B], where each sequence ends in `query`.
        actual_seq_kvlen (Union[Tensor, tuple, list], optional): For TND: int64 [B], where each ends in `key`.
        keep_prob (float): In (0, 1]; below 1 either `drop_mask` or `seed_offset` must be given. Default: ``1.0``.
        scalar_value (float): The scale. Default: ``1.0``.
        pre_tokens (int): Keys before the diagonal that mode 4 keeps, and mode 0 with `attn_mask`.
            Default: ``2147483647``.
        next_tokens (int): Keys behind the diagonal. Default: ``2147483647``.
        inner_precise (int): 0, 1 or 2; all compute in float32. Default: ``0``.
        input_layout (str): "BSH", "SBH", "BNSD", "BSND" or "TND". Default: ``"BSH"``.
        sparse_mode (int): 0 `attn_mask` or nothing; 1 `attn_mask`; 2 causal from the first row and key; 3 causal to the
            last row and key; 4 band around that diagonal; 5, 6 as 3 with `prefix`; 7 for TND: 3, but 4 for the last
            sequence; 8 for TND: 2, but 4 for the first. Default: ``0``.
        pse_type (int): 0 adds `real_shift` after the scale, 1 before it; 2 subtracts slope * distance, 3 slope *
            sqrt(distance). Default: ``1``.
        q_start_idx (int): Position of the first query row for the distance. Default: ``0``.
        kv_start_idx (int): Position of the first key. Default: ``0``.
        softcap (float): Above 0, scaled scores x become softcap * tanh(x / softcap). Default: ``0.0``.
        sink (Tensor, optional): float32 [N], a logit of each head that takes part in the softmax without a value.
        seed_offset (Union[Tensor, tuple, list], optional): int64 [2]: seed and offset of the dropout.
        return_softmax (bool): Also return softmax_max and softmax_sum, without gradient. Default: ``False``.
        return_lse (bool): Also return the logarithm of the sum of exponentials, with gradient. Default: ``False``.

    Returns:
        attention_out, as `query` with heads of width Dv. With `return_softmax` and `return_lse` a tuple of it,
        softmax_max and softmax_sum, float32 [B, N, Sq, 8] (TND [T, N, 8]), eight equal copies, and the lse, float32
        [B, N, Sq] (TND [T, N]); -inf where no key is seen.

    Raises:
        TypeError: If a dtype or the type of an attribute is none of those above.
        ValueError: If shapes, lengths, attributes and layout do not fit together.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer import ops
        >>> x = ms.ops.ones((2, 16, 4 * 32), ms.float32)
        >>> print(ops.flash_attention_score(x, x, x, head_num=4, sparse_mode=3).shape)
        (2, 16, 128)
    """
    required(_NAME, "query", query)
    required(_NAME, "key", key)
    required(_NAME, "value", value)
    if padding_mask is not None:
        got = "a Tensor" if isinstance(padding_mask, ms.Tensor) else padding_mask
        raise ValueError(f"For '{_NAME}', 'padding_mask' is reserved and must be None, but got {got}.")
    _check_flag("return_softmax", return_softmax)
    _check_flag("return_lse", return_lse)
    _known("head_num", head_num)
    _known("scalar_value", scalar_value)
    _known("next_tokens", next_tokens)
    _check_attribute("scale_value", scalar_value, "scalar_value")
    _check_attribute("pse_type", pse_type, "pse_type")
    prefix_tensor = _int64("prefix", prefix)
    q_ends = _int64("actual_seq_qlen", actual_seq_qlen)
    kv_ends = _int64("actual_seq_kvlen", actual_seq_kvlen)
    seed_offset = _int64("seed_offset", seed_offset)
    slopes = real_shift if pse_type in (2, 3) else None
    if slopes is not None:
        required(_NAME, "real_shift", slopes)
        _check_slopes(slopes.dtype)
    shift = None if pse_type in (2, 3) else real_shift
    optional = (shift, drop_mask, attn_mask, prefix_tensor, q_ends, kv_ends, sink, seed_offset, slopes)
    options = {
        "head_num": head_num, "keep_prob": keep_prob, "scale_value": scalar_value, "pre_tokens": pre_tokens,
        "next_tokens": next_tokens, "input_layout": input_layout, "sparse_mode": sparse_mode,
        "inner_precise": inner_precise, "pse_type": pse_type, "q_start_idx": q_start_idx,
        "kv_start_idx": kv_start_idx, "softcap": softcap}  # fmt: skip
    attention = primitive("flash_attention_score", _absent(optional), **options)
    has_lists = _is_list(prefix) or _is_list(actual_seq_qlen) or _is_list(actual_seq_kvlen)
    shapes = _shapes((query, key, value, *optional)) if has_lists else None
    if has_lists and isconstant(shapes):  # what follows from unknown dims is checked when the operator runs
        _check_lists((_list(prefix), _list(actual_seq_qlen), _list(actual_seq_kvlen)), shapes, **options)
    out, softmax_max, softmax_sum = attention(query, key, value, *optional)
    if return_softmax and return_lse:
        lse = _log_sum_exp(softmax_max, softmax_sum)
        return out, ops.stop_gradient(softmax_max), ops.stop_gradient(softmax_sum), lse
    if return_softmax:
        return out, ops.stop_gradient(softmax_max), ops.stop_gradient(softmax_sum)
    if return_lse:
        return out, _log_sum_exp(softmax_max, softmax_sum)
    return out


def _has_rank_of(layout, tensor):
    return layout in _RANK and isinstance(tensor, ms.Tensor) and tensor.ndim == _RANK[layout]


@at_build
def _default_scale(width, heads, layout):
    """1 / sqrt(D) for a `width` of D or, without a dim for the heads, N * D; 1 where that is wrong, and found later."""
    if layout not in _HEAD_AXIS:
        width = width // heads if isinstance(heads, int) and heads > 0 else 0
    return max(1, width) ** -0.5


def flash_attention(query, key, value, head_num=1, *, layout="BSH", causal=False, attn_mask=None, scale=None,
                    keep_prob=1.0, seed_offset=None, actual_seq_qlen=None, actual_seq_kvlen=None, real_shift=None,
                    softcap=0.0, sink=None, return_lse=False):  # fmt: skip
    r"""Scaled dot-product attention: :func:`flash_attention_score` with the usual defaults.

    Args:
        query (Tensor): By `layout`, as in :func:`flash_attention_score`.
        key (Tensor): The number of its heads is deduced from its shape.
        value (Tensor): As `key`, any head width.
        head_num (int): Query heads N. Where they are a dim of `query`, 1 stands for that dim. Default: ``1``.
        layout (str): "BSH", "SBH", "BNSD", "BSND" or "TND". Default: ``"BSH"``.
        causal (bool): A row sees the keys up to its own, counted from the last row and key. Default: ``False``.
        attn_mask (Tensor, optional): bool or uint8, 1 = drop, together with `causal` if that is set.
        scale (float, optional): ``None``: 1 / sqrt(D).
        keep_prob (float): In (0, 1]. Default: ``1.0``.
        seed_offset (Union[Tensor, tuple, list], optional): int64 [2]: seed and offset of the dropout.
        actual_seq_qlen (Union[Tensor, tuple, list], optional): For TND: int64 [B], where each sequence ends.
        actual_seq_kvlen (Union[Tensor, tuple, list], optional): For TND: int64 [B], where each ends in `key`.
        real_shift (Tensor, optional): Bias of the scaled scores.
        softcap (float): As in :func:`flash_attention_score`. Default: ``0.0``.
        sink (Tensor, optional): float32 [N], a logit of each head without a value.
        return_lse (bool): Also return the logarithm of the sum of exponentials. Default: ``False``.

    Returns:
        attention_out, as `query` with the head width of `value`; with `return_lse` a tuple of it and the lse.

    Raises:
        TypeError: If a dtype or the type of an attribute is not allowed.
        ValueError: If shapes, lengths, attributes and layout do not fit together.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer import ops
        >>> x = ms.ops.ones((1, 4, 16, 32), ms.float32)
        >>> print(ops.flash_attention(x, x, x, layout="BNSD", causal=True).shape)
        (1, 4, 16, 32)
    """
    required(_NAME, "query", query)
    required(_NAME, "key", key)
    _check_flag("causal", causal)
    _known("head_num", head_num)
    _check_attribute("head_num", head_num, "head_num")
    _check_attribute("input_layout", layout, "layout")
    # A layout or rank that is wrong is left to flash_attention_score.
    heads = head_num
    if head_num == 1 and layout in _HEAD_AXIS and _has_rank_of(layout, query):
        heads = query.shape[_HEAD_AXIS[layout]]
    if scale is None and _has_rank_of(layout, query):
        scale = _default_scale(query.shape[_RANK[layout] - 1], heads, layout)
    elif scale is None:
        scale = 1.0
    _known("head_num", heads)
    _known("scale", scale)
    _check_attribute("scale_value", scale, "scale")
    sparse_mode = 3 if causal else 0
    next_tokens = _NO_LIMIT
    if causal and attn_mask is not None and _has_rank_of(layout, query) and _has_rank_of(layout, key):
        if layout == "TND":
            raise ValueError(f"For '{_NAME}', 'attn_mask' must be None with causal and layout 'TND', but got a Tensor.")
        sparse_mode = 0
        rows, keys = query.shape[_ROW_AXIS[layout]], key.shape[_ROW_AXIS[layout]]
        if isconstant(keys - rows):
            next_tokens = keys - rows
        else:
            later = ops.arange(keys) > ops.arange(rows).expand_dims(1) + (keys - rows)
            attn_mask = ops.logical_or(attn_mask.astype(ms.bool_), later)
    return flash_attention_score(
        query, key, value, heads, real_shift=real_shift, attn_mask=attn_mask, actual_seq_qlen=actual_seq_qlen,
        actual_seq_kvlen=actual_seq_kvlen, keep_prob=keep_prob, scalar_value=scale, next_tokens=next_tokens,
        input_layout=layout, sparse_mode=sparse_mode, pse_type=0, softcap=softcap, sink=sink, seed_offset=seed_offset,
        return_lse=return_lse)  # fmt: skip
