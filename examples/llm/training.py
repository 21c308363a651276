# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The training step: loss, gradients, clipping and AdamW in one graph."""

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

from ms_ops_transformer.models import build_model


class AdamW(nn.Cell):
    """Adam with decoupled weight decay on the matrices; moments and powers of beta are Parameters that can be saved."""

    def __init__(self, params, betas, eps, weight_decay):
        super().__init__(auto_prefix=False)
        self.params = ParameterTuple(params)
        self.exp_avg = self.params.clone("exp_avg", "zeros")
        self.exp_avg_sq = self.params.clone("exp_avg_sq", "zeros")
        self.beta1_power = Parameter(Tensor(1.0, ms.float32), name="beta1_power")
        self.beta2_power = Parameter(Tensor(1.0, ms.float32), name="beta2_power")
        self.decays = tuple(weight_decay if p.ndim > 1 else 0.0 for p in params)
        self.betas, self.eps = betas, eps
        self.adam = ops.Adam()

    def construct(self, grads, rate):
        beta1, beta2 = self.betas
        ops.assign(self.beta1_power, self.beta1_power * beta1)
        ops.assign(self.beta2_power, self.beta2_power * beta2)
        for i, grad in enumerate(grads):
            param = self.params[i]
            if self.decays[i]:
                ops.assign(param, param * (1 - rate * self.decays[i]))
            moments = (self.exp_avg[i], self.exp_avg_sq[i])
            powers = (self.beta1_power, self.beta2_power)
            self.adam(param, *moments, *powers, rate, beta1, beta2, self.eps, grad)
        return True


class TrainStep(nn.Cell):
    """One update; returns the loss and the norm of the gradients before clipping."""

    def __init__(self, model, optimizer, clip_grad):
        super().__init__(auto_prefix=False)
        self.model, self.optimizer, self.clip_grad = model, optimizer, clip_grad
        self.grad = ms.value_and_grad(model, None, optimizer.params)
        self.half_square = ops.L2Loss()

    def construct(self, ids, labels, rate):
        loss, grads = self.grad(ids, labels)
        square = 0.0
        for grad in grads:
            square = square + self.half_square(grad)
        norm = ops.sqrt(2.0 * square)
        if self.clip_grad:
            factor = self.clip_grad / ops.maximum(norm, Tensor(self.clip_grad, ms.float32))
            clipped = ()
            for grad in grads:
                clipped += (grad * factor,)
            grads = clipped
        return ops.depend(loss, self.optimizer(grads, rate)), norm


class EvalStep(nn.Cell):
    """The loss alone."""

    def __init__(self, model):
        super().__init__(auto_prefix=False)
        self.model = model

    def construct(self, ids, labels):
        return self.model(ids, labels)


class Trainer:
    """Model, optimizer and their steps in the chosen mode, started from the settings' seed."""

    def __init__(self, settings, mode, fused):
        ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
        ms.set_seed(settings.seed)
        np.random.seed(settings.seed)
        self.settings = settings
        self.model = build_model(settings.model, fused=fused)
        self.optimizer = AdamW(self.model.trainable_params(), settings.betas, settings.eps, settings.weight_decay)
        self._train = TrainStep(self.model, self.optimizer, settings.clip_grad)
        self._train.set_train()
        self._eval = EvalStep(self.model)

    def step(self, batch, index):
        """One update with the learning rate of step `index`; returns (loss, gradient norm)."""
        loss, norm = self._train(Tensor(batch[0]), Tensor(batch[1]), Tensor(self.settings.rate(index), ms.float32))
        loss, norm = float(loss.asnumpy()), float(norm.asnumpy())
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss of step {index + 1} is {loss}; a smaller --lr may help.")
        return loss, norm

    def evaluate(self, batches):
        """Mean loss over some batches."""
        self.model.set_train(False)
        losses = [float(self._eval(Tensor(ids), Tensor(labels)).asnumpy()) for ids, labels in batches]
        self.model.set_train(True)
        return sum(losses) / len(losses)

    def parameters(self):
        """Everything but the weights that the next step depends on: moments, powers of beta, dropout counters."""
        weights = {p.name for p in self.optimizer.params}
        own = list(self.optimizer.exp_avg) + list(self.optimizer.exp_avg_sq)
        own += [self.optimizer.beta1_power, self.optimizer.beta2_power]
        own += [p for p in self.model.get_parameters() if p.name not in weights]
        return {p.name: p for p in own}
