# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Every place where a kernel synchronises, or makes a buffer, is there for a reason: without it a rule is broken."""

import pytest
from mutation import Survey, all_lines, describe

# Places that are missed, by what mutation.describe says of them, and why they stay.
SURVIVORS = {
    "InitBuffer flash_attention_score_dropout.h: key_ = Mix(static_cast<uint64_t>(seedGm.GetValue(0)) + kStep) ^ "
    "static_cast<uint64_t>(seedGm.GetValue(1)); | pipe->InitBuffer(bitsBuf_, FlashGeneratorBytes(tiles->kvCols));": (
        "no launch here draws bits for a tile of the full width"
    ),
    "InitBuffer moe_gating_top_k_softmax_kernel.h: pipe->InitBuffer(mergeBuf_[1], tiling->expertPitch * kRecordBytes); "
    "| pipe->InitBuffer(chosenBuf_, (choices + kWays * RoundUpOf(tiling->choicePitch, kSortUnit)) * kRecordBytes);": (
        "room for all that a merge may write; equal lists of the largest k would fill it"
    ),
    "PipeBarrier flash_attention_score_grad_sums.h: AscendC::Axpy(sum, key, ds, D); "
    "| AscendC::PipeBarrier<PIPE_V>();": (
        "for units that give no gradient of keys in careful mode; with one, AddTo waits longer"
    ),
    "PipeBarrier rms_norm_gamma.h: Cast(gammaFloat, gamma, RoundMode::CAST_NONE, cols); | PipeBarrier<PIPE_V>();": (
        "so that users of gamma need not know; today all have a barrier before its first use"
    ),
    "PipeBarrier rotary_position_embedding_pairs.h: Duplicate(bits.ReinterpretCast<uint16_t>(), evens, "
    "static_cast<int32_t>(CeilDivOf(count, 16))); | PipeBarrier<PIPE_V>();": (
        "so that users of the bits need not know; today FillSign follows, which has its own"
    ),
    "flag flash_attention_score_output.h: AscendC::DataCopy(state_, gm, static_cast<uint32_t>(stateFloats())); | "
    "WaitPipe<AscendC::HardEvent::MTE2_V>();": "for a block that sees no key of its last super-block",
}


@pytest.fixture(scope="module")
def survey():
    return Survey()


def test_places_are_caught(survey):
    assert len(survey.caught) > 300
    assert {describe(place) for place in survey.survivors} == set(SURVIVORS)


def test_every_place_is_passed(survey):
    assert {describe(place) for place in set(all_lines()) - set(survey.caught)} == set()
