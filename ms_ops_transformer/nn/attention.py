# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Attention Cells: the cores, and a self-attention block with projections."""

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.ops.functional import isconstant

from ..ops import flash_attention, flash_attention_score
from ..ops._check import required
from ._check import (
    boolean,
    dropout_rate,
    keep_probability,
    kv_heads,
    last_dim,
    one_of,
    parameter_dtype,
    positive_float,
    positive_int,
)
from .dropout import DropoutState
from .norm import RMSNorm
from .rotary import RotaryEmbedding

_LAYOUTS = ("BSH", "SBH", "BSND", "BNSD")
_SCORE_LAYOUTS = _LAYOUTS + ("TND",)
_HEAD_AXIS = {"BSND": 2, "BNSD": 1, "TND": 1}


class _DropoutCore(nn.Cell):
    """What the attention cores share: a keep probability, and the (seed, offset) pair of a call."""

    def __init__(self, keep_prob, seed):
        super().__init__()
        self.keep_prob = keep_prob
        self.dropout_state = DropoutState(seed) if keep_prob < 1 else None

    def current_seed(self, seed_offset):
        """The pair to use and the keep probability; outside training nothing is dropped."""
        if self.keep_prob == 1 or not self.training:
            return None, 1.0
        if seed_offset is not None:
            return seed_offset, self.keep_prob
        if self._has_config_recompute:
            raise ValueError(
                "For an attention Cell with dropout inside a recomputed Cell, 'seed_offset' must be given (the result "
                "of a DropoutState outside of it), but got None."
            )
        return self.dropout_state(), self.keep_prob


class FlashAttention(_DropoutCore):
    r"""Attention of given queries, keys and values, without the score matrix in memory.

    .. math::
        y = \mathrm{dropout}(\mathrm{softmax}(q k^T / \sqrt{D} + mask))\, v

    Args:
        head_dim (int): size D of a head.
        num_heads (int): query heads N.
        causal (bool): a query sees the keys up to its own position, counted from the end of both sequences.
            Default ``False``.
        num_kv_heads (int, optional): key and value heads Nkv, a divisor of N. Default ``None``: N.
        dropout (float): probability to drop an attention weight while training, in [0, 1). Default ``0.0``.
        layout (str): ``'BSH'``, ``'SBH'``, ``'BSND'`` or ``'BNSD'``. Default ``'BSH'``.
        scale (float, optional): factor of the scores. Default ``None``: 1/sqrt(D).
        seed (int): start of the Cell's own dropout stream. Default ``0``.

    Inputs:
        - **q** (Tensor) - [B, Sq, N*D] or by layout; float32, float16 or bfloat16.
        - **k** (Tensor), **v** (Tensor) - [B, Skv, Nkv*D] or by layout.
        - **attn_mask** (Tensor, optional) - bool or uint8, 1 = drop; [Sq, Skv], [B, 1, Sq, Skv], [B, N, Sq, Skv] or
          [B, 1, 1, Skv]. Default ``None``.
        - **seed_offset** (Tensor, optional) - int64 [2], the (seed, offset) of the dropout. Default ``None``:
          the Cell's own, which moves on with every call; inside a recomputed Cell it must be given.

    Outputs:
        Tensor of the shape and dtype of `q`.

    Raises:
        ValueError: if a size, `layout`, `dropout` or the shapes do not fit.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import FlashAttention
        >>> x = ms.ops.ones((2, 16, 4 * 64), ms.float32)
        >>> print(FlashAttention(head_dim=64, num_heads=4, causal=True)(x, x, x).shape)
        (2, 16, 256)
    """

    def __init__(
        self, head_dim, num_heads, causal=False, num_kv_heads=None, dropout=0.0, layout="BSH", scale=None, seed=0
    ):
        super().__init__(1.0 - dropout_rate("FlashAttention", "dropout", dropout), seed)
        self.head_dim = positive_int("FlashAttention", "head_dim", head_dim)
        self.num_heads = positive_int("FlashAttention", "num_heads", num_heads)
        self.num_kv_heads = kv_heads("FlashAttention", num_heads, num_kv_heads)
        self.causal = boolean("FlashAttention", "causal", causal)
        self.layout = one_of("FlashAttention", "layout", layout, _LAYOUTS)
        self.head_axis = _HEAD_AXIS.get(layout)
        self.scale = 1 / math.sqrt(head_dim) if scale is None else positive_float("FlashAttention", "scale", scale)

    def construct(self, q, k, v, attn_mask=None, seed_offset=None):
        required("FlashAttention", "k", k)
        if isconstant(k.ndim):
            self._check_heads(k)
        seed_offset, keep_prob = self.current_seed(seed_offset)
        return self.attend(q, k, v, attn_mask, keep_prob, seed_offset)

    def attend(self, q, k, v, attn_mask, keep_prob, seed_offset):
        """The operator itself."""
        return flash_attention(
            q,
            k,
            v,
            self.num_heads,
            layout=self.layout,
            causal=self.causal,
            attn_mask=attn_mask,
            scale=self.scale,
            keep_prob=keep_prob,
            seed_offset=seed_offset,
        )

    def _check_heads(self, k):
        """The keys have as many heads as the constructor was told (the operator would deduce another number)."""
        if self.layout in ("BSH", "SBH"):
            if k.ndim == 3 and self._differ(k.shape[2], self.num_kv_heads * self.head_dim):
                raise ValueError(
                    f"For 'FlashAttention', the last dim of 'k' must be num_kv_heads * head_dim "
                    f"({self.num_kv_heads} * {self.head_dim}), but got {k.shape[2]}."
                )
        elif k.ndim == 4 and self._differ(k.shape[self.head_axis], self.num_kv_heads):
            raise ValueError(
                f"For 'FlashAttention', the heads of 'k' must be num_kv_heads ({self.num_kv_heads}), "
                f"but got {k.shape[self.head_axis]}."
            )
        elif k.ndim == 4 and self._differ(k.shape[3], self.head_dim):
            raise ValueError(
                f"For 'FlashAttention', the last dim of 'k' must be head_dim ({self.head_dim}), but got {k.shape[3]}."
            )

    def _differ(self, dim, expected):
        """Whether a dim is known and another one: a graph cannot raise what follows from an unknown dim."""
        return isconstant(dim) and dim != expected

    def extend_repr(self):
        return (
            f"head_dim={self.head_dim}, num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}, "
            f"causal={self.causal}, keep_prob={self.keep_prob}, layout={self.layout}"
        )


class FlashAttentionScore(_DropoutCore):
    r"""Attention with every option of the operator; a drop-in for scaled dot-product attention on [B, N, S, D].

    Args:
        head_num (int, optional): query heads N. Needed for BSH and SBH; for the other layouts ``None`` takes it from
            `query`. Default ``None``.
        input_layout (str): ``'BNSD'``, ``'BSND'``, ``'BSH'``, ``'SBH'`` or ``'TND'``. Default ``'BNSD'``.
        keep_prob (float): in (0, 1]. Default ``1.0``.
        mask_type (str): meaning of True in a bool or uint8 `attn_mask`: ``'drop'`` (this family) or ``'keep'``
            (scaled dot-product attention of other frameworks). Default ``'drop'``.
        scale (float, optional): multiplies the scores. Default ``None``: 1/sqrt(D).
        pre_tokens (int), next_tokens (int): limits of a band. Default ``2147483647``.
        sparse_mode (int): 0 to 8. Default ``0``.
        inner_precise (int): Default ``0``.
        softcap (float): above 0, scaled scores x become softcap * tanh(x / softcap). Default ``0.0``.
        seed (int): start of the Cell's own dropout stream. Default ``0``.

    Inputs:
        - **query**, **key**, **value** (Tensor) - by layout; float32, float16 or bfloat16.
        - **attn_mask** (Tensor, optional) - bool or uint8 (see `mask_type`), or a float tensor that is added to the
          scaled scores. Default ``None``.
        - **scale** (float, optional) - overrides the constructor's. Default ``None``.
        - **real_shift** (Tensor, optional), **drop_mask** (Tensor, optional), **prefix**, **actual_seq_qlen**,
          **actual_seq_kvlen** - as for ``ops.flash_attention_score``. Default ``None``.
        - **sink** (Tensor, optional) - float32 [N], a logit of each head without a value. Default ``None``.
        - **seed_offset** (Tensor, optional) - int64 [2] of the dropout. Default ``None``: the Cell's own.

    Outputs:
        Tensor of the shape of `query` (last head dim as `value`).

    Raises:
        TypeError: if the dtypes do not fit.
        ValueError: if an option or a shape does not fit; both as ``ops.flash_attention_score``.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import FlashAttentionScore
        >>> x = ms.ops.ones((1, 2, 8, 16), ms.float32)
        >>> print(FlashAttentionScore()(x, x, x).shape)
        (1, 2, 8, 16)
    """

    def __init__(
        self,
        head_num=None,
        input_layout="BNSD",
        keep_prob=1.0,
        mask_type="drop",
        scale=None,
        pre_tokens=2147483647,
        next_tokens=2147483647,
        sparse_mode=0,
        inner_precise=0,
        softcap=0.0,
        seed=0,
    ):
        name = type(self).__name__
        super().__init__(keep_probability(name, "keep_prob", keep_prob), seed)
        self.input_layout = one_of(name, "input_layout", input_layout, _SCORE_LAYOUTS)
        self.head_axis = _HEAD_AXIS.get(input_layout)
        if head_num is None and input_layout in ("BSH", "SBH"):
            raise ValueError(f"For '{name}', 'head_num' must be given for the layout {input_layout}, but got None.")
        self.head_num = None if head_num is None else positive_int(name, "head_num", head_num)
        self.keep_mask = one_of(name, "mask_type", mask_type, ("drop", "keep")) == "keep"
        self.scale = None if scale is None else positive_float(name, "scale", scale)
        self.pre_tokens, self.next_tokens = pre_tokens, next_tokens
        self.sparse_mode, self.inner_precise = sparse_mode, inner_precise
        self.softcap = positive_float(name, "softcap", softcap, zero=True)
        self.pse_type, self.q_start_idx, self.kv_start_idx = 1, 0, 0

    def construct(
        self,
        query,
        key,
        value,
        attn_mask=None,
        scale=None,
        real_shift=None,
        drop_mask=None,
        prefix=None,
        actual_seq_qlen=None,
        actual_seq_kvlen=None,
        sink=None,
        seed_offset=None,
    ):
        required("FlashAttentionScore", "query", query)
        heads = self.head_num
        if heads is None:
            heads = query.shape[self.head_axis]
        if scale is None:
            scale = self.scale
        if scale is None:
            width = query.shape[-1] // (heads if self.input_layout in ("BSH", "SBH") else 1)
            # A width of 0 or an unknown one is left to the operator.
            scale = 1 / math.sqrt(max(1, width)) if isconstant(width) else width
        pse_type = self.pse_type
        if attn_mask is not None:
            if attn_mask.dtype in (ms.float32, ms.float16, ms.bfloat16):
                if real_shift is not None:
                    raise ValueError(
                        "For 'FlashAttentionScore', a float 'attn_mask' must come without 'real_shift', but got both."
                    )
                real_shift, attn_mask, pse_type = self._bias(attn_mask, query.dtype), None, 0
            elif self.keep_mask:
                attn_mask = attn_mask == 0 if attn_mask.dtype == ms.uint8 else ops.logical_not(attn_mask)
        if drop_mask is not None:
            seed_offset, keep_prob = None, self.keep_prob
        else:
            seed_offset, keep_prob = self.current_seed(seed_offset)
        return flash_attention_score(
            query,
            key,
            value,
            heads,
            real_shift=real_shift,
            drop_mask=drop_mask,
            attn_mask=attn_mask,
            prefix=prefix,
            actual_seq_qlen=actual_seq_qlen,
            actual_seq_kvlen=actual_seq_kvlen,
            keep_prob=keep_prob,
            scalar_value=scale,
            pre_tokens=self.pre_tokens,
            next_tokens=self.next_tokens,
            inner_precise=self.inner_precise,
            input_layout=self.input_layout,
            sparse_mode=self.sparse_mode,
            pse_type=pse_type,
            q_start_idx=self.q_start_idx,
            kv_start_idx=self.kv_start_idx,
            softcap=self.softcap,
            sink=sink,
            seed_offset=seed_offset,
        )

    def _bias(self, mask, dtype):
        """An additive mask of any rank up to 4 as the operator's real_shift."""
        while mask.ndim < 4:
            mask = mask.expand_dims(0)
        return mask.astype(dtype)


class FlashAttentionV2(FlashAttentionScore):
    r"""FlashAttentionScore with the second interface's options: where the bias enters, and ALiBi made inside.

    Args:
        pse_type (int): 0: scale*A + pse; 1: scale*(A + pse); 2: ALiBi from slopes in `real_shift`, -slope*|i - j|;
            3: its square root. Default ``1``.
        q_start_idx (int), kv_start_idx (int): position of the first query and key, for types 2 and 3. Default ``0``.
        kwargs: as FlashAttentionScore.

    Inputs:
        As FlashAttentionScore.

    Outputs:
        As FlashAttentionScore.

    Raises:
        TypeError: as FlashAttentionScore.
        ValueError: as FlashAttentionScore, or if `pse_type` is unknown.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import FlashAttentionV2
        >>> x = ms.ops.ones((1, 2, 8, 16), ms.float32)
        >>> slopes = ms.Tensor([0.5, 0.25], ms.float32)
        >>> print(FlashAttentionV2(pse_type=2)(x, x, x, real_shift=slopes).shape)
        (1, 2, 8, 16)
    """

    def __init__(self, head_num=None, input_layout="BNSD", pse_type=1, q_start_idx=0, kv_start_idx=0, **kwargs):
        super().__init__(head_num, input_layout, **kwargs)
        self.pse_type = one_of("FlashAttentionV2", "pse_type", pse_type, (0, 1, 2, 3))
        self.q_start_idx, self.kv_start_idx = q_start_idx, kv_start_idx


class SelfAttention(nn.Cell):
    r"""Self-attention with its projections, grouped key/value heads, rotary positions and optional norms of q and k.

    Args:
        hidden_size (int): size H of `x`.
        num_heads (int): query heads N.
        num_kv_heads (int, optional): key and value heads. Default ``None``: N.
        head_dim (int, optional): Default ``None``: H / N.
        causal (bool): Default ``True``.
        rotary (Union[RotaryEmbedding, None, str]): ``'default'`` makes one with base 10000 for at most 2048 positions;
            longer sequences need ``RotaryEmbedding(head_dim, max_positions)``; ``None`` leaves positions out; layers of
            a model may share one (layout BSND). Default ``'default'``.
        qk_norm (bool): RMSNorm over D of q and of k before the rotation (Qwen3). Default ``False``.
        norm_eps (float): of these norms. Default ``1e-6``.
        qkv_bias (bool), out_bias (bool): Default ``False``.
        dropout (float): of the attention weights. Default ``0.0``.
        params_dtype (mindspore.dtype): Default ``float32``.
        weight_init (Union[str, Initializer], optional): of the projections; ``None`` takes that of nn.Dense.
        parts: object with the Cells to build from, `FlashAttention` and `RMSNorm`. Default ``None``: those of this
            package.

    Inputs:
        - **x** (Tensor) - [B, S, H].
        - **attn_mask** (Tensor, optional) - as for FlashAttention. Default ``None``.
        - **positions** (Tensor, optional) - as for RotaryEmbedding. Default ``None``.
        - **seed_offset** (Tensor, optional) - as for FlashAttention. Default ``None``.

    Outputs:
        Tensor [B, S, H].

    Raises:
        ValueError: if a size is not positive, `num_heads` is no multiple of `num_kv_heads`, or a shape does not fit.

    Supported Platforms:
        ``Ascend`` ``CPU``

    Examples:
        >>> import mindspore as ms
        >>> from ms_ops_transformer.nn import SelfAttention
        >>> x = ms.ops.ones((2, 16, 64), ms.float32)
        >>> print(SelfAttention(64, num_heads=4, num_kv_heads=2)(x).shape)
        (2, 16, 64)
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        num_kv_heads=None,
        head_dim=None,
        causal=True,
        rotary="default",
        qk_norm=False,
        norm_eps=1e-6,
        qkv_bias=False,
        out_bias=False,
        dropout=0.0,
        params_dtype=ms.float32,
        weight_init=None,
        parts=None,
    ):
        super().__init__()
        self.hidden_size = positive_int("SelfAttention", "hidden_size", hidden_size)
        self.num_heads = positive_int("SelfAttention", "num_heads", num_heads)
        self.num_kv_heads = kv_heads("SelfAttention", num_heads, num_kv_heads)
        if head_dim is None:
            if hidden_size % num_heads:
                raise ValueError(
                    f"For 'SelfAttention', 'hidden_size' must be a multiple of 'num_heads' ({num_heads}) when "
                    f"'head_dim' is None, but got {hidden_size}."
                )
            head_dim = hidden_size // num_heads
        self.head_dim = positive_int("SelfAttention", "head_dim", head_dim)
        parameter_dtype("SelfAttention", params_dtype)
        for name, value in (("qk_norm", qk_norm), ("qkv_bias", qkv_bias), ("out_bias", out_bias)):
            boolean("SelfAttention", name, value)
        if isinstance(rotary, str):
            one_of("SelfAttention", "rotary", rotary, ("default",))
            rotary = RotaryEmbedding(head_dim)
        core = FlashAttention if parts is None else parts.FlashAttention
        norm = RMSNorm if parts is None else parts.RMSNorm

        def dense(inputs, outputs, bias):
            return nn.Dense(inputs, outputs, has_bias=bias, dtype=params_dtype, weight_init=weight_init)

        self.q_proj = dense(hidden_size, num_heads * head_dim, qkv_bias)
        self.k_proj = dense(hidden_size, self.num_kv_heads * head_dim, qkv_bias)
        self.v_proj = dense(hidden_size, self.num_kv_heads * head_dim, qkv_bias)
        self.o_proj = dense(num_heads * head_dim, hidden_size, out_bias)
        self.q_norm = norm(head_dim, norm_eps, params_dtype) if qk_norm else None
        self.k_norm = norm(head_dim, norm_eps, params_dtype) if qk_norm else None
        self.rotary = rotary
        self.core = core(head_dim, num_heads, causal=causal, num_kv_heads=self.num_kv_heads, dropout=dropout)

    def construct(self, x, attn_mask=None, positions=None, seed_offset=None):
        last_dim("SelfAttention", x, self.hidden_size)
        q = self._heads(self.q_proj(x), self.num_heads, self.q_norm, positions)
        k = self._heads(self.k_proj(x), self.num_kv_heads, self.k_norm, positions)
        return self.o_proj(self.core(q, k, self.v_proj(x), attn_mask, seed_offset))

    def _heads(self, x, heads, norm, positions):
        """Norm and rotation of each head; [B, S, heads*D] in and out."""
        if norm is None and self.rotary is None:
            return x
        shape = x.shape
        x = x.reshape(shape[0], shape[1], heads, self.head_dim)
        if norm is not None:
            x = norm(x)
        if self.rotary is not None:
            x = self.rotary(x, positions)
        return x.reshape(shape)
