"""Inverse problems: the smallest noise, or the largest count or sampling, for a target.

``subsampled_gaussian`` finds the noise, the count or the sampling probability of DP-SGD;
``any_mechanism`` finds any unknown of any mix, for any target.
"""

from __future__ import annotations

from accountant.calibration.subsampled_gaussian import calibrate_q, calibrate_sigma, calibrate_steps

__all__ = ["calibrate_q", "calibrate_sigma", "calibrate_steps"]
