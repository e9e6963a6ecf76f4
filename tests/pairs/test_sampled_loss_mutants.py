"""What mutation testing (support/hardening) found nobody watching in losses under sampling."""

import math
import random

import mpmath
import numpy as np
import pytest

from accountant.pairs import excess

mp = mpmath.mpf

U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("q", [1e-12, 0.01, 0.3, 0.5, 0.51, 0.9, 1 - 1e-9])
def test_losses_of_samples_and_back(q):
    draw = random.Random(int(q * 1e6))
    losses = [s * 10 ** draw.uniform(-12, 2) for s in (-1, 1) for _ in range(60)]
    losses += [690.0, 701.0, 705.0, 720.0, 900.0, -800.0]
    with mpmath.workdps(500):
        p = mp(q)
        found = excess.loss_of_sample(q, np.array(losses)).tolist()
        for loss, value in zip(losses, found, strict=True):
            truth = mpmath.log(1 - p + p * mpmath.exp(mp(loss)))
            assert abs(value - truth) <= 16 * U * abs(truth)
        targets = [x for x in found if x > math.log1p(-q) * (1 - 1e-6) and x != 0.0]
        back = excess.loss_of_sample_inverse(q, np.array(targets)).tolist()
        for target, loss in zip(targets, back, strict=True):
            stands_for = mpmath.log(1 - p + p * mpmath.exp(mp(loss)))
            room = 16 * U * abs(mp(target)) + 8 * U * max(mp(loss), 0)
            assert abs(stands_for - target) <= room
    ends = excess.loss_of_sample(q, np.array([-math.inf, 0.0, math.inf])).tolist()
    assert ends[0] == pytest.approx(math.log1p(-q), rel=1e-15)
    assert ends[1:] == [0.0, math.inf]
