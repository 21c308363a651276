# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""Every place where a kernel synchronises, or makes a buffer, is there for a reason: without it a rule is broken."""

import pytest
from mutation import Survey, all_lines, describe

# Places that are missed, by what mutation.describe says of them, and why they stay.
SURVIVORS = {}
# Places that no launch passes.
NOT_PASSED = {}


@pytest.fixture(scope="module")
def survey():
    return Survey()


def test_places_are_caught(survey):
    assert len(survey.caught) > 300
    assert {describe(place) for place in survey.survivors} == set(SURVIVORS)
    assert len(survey.survivors) <= 0.05 * len(survey.caught)


def test_every_place_is_passed(survey):
    assert {describe(place) for place in set(all_lines()) - set(survey.caught)} == set(NOT_PASSED)
