"""Private selection: noisy maxima, the exponential mechanism, threshold tests, tuning."""

from accountant.learn.selection.noisy_max import (
    AboveThresholdStream,
    Selection,
    permute_and_flip,
    report_noisy_max,
    select_exponential,
)
from accountant.learn.selection.tuning import SearchResult, draw_runs, select_best

__all__ = [
    "AboveThresholdStream",
    "SearchResult",
    "Selection",
    "draw_runs",
    "permute_and_flip",
    "report_noisy_max",
    "select_best",
    "select_exponential",
]
