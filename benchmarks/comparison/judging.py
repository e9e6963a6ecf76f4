"""Where each answer lies relative to the truth, and what an engine's answers come to."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from comparison.libraries import OURS, OURS_BOUNDS, OURS_RDP, RDP_PEERS
from comparison.problems import Problem


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Divide, or None where either side is missing."""
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def judge(problem: Problem, row: dict[str, Any]) -> None:
    """Add the bracket of the truth and each engine's place relative to it to a row."""
    known = problem.reference_interval
    bounds = row["ours"][OURS_BOUNDS.name].get("value")
    if bounds is not None:
        lower, upper = bounds
        row["bracket"] = {"lower": lower, "upper": upper, "source": "ours"}
        row["bracket_width"] = (upper - lower) / upper if upper > 0 else 0.0
        if known is not None:
            row["agrees_with_reference"] = lower <= known[1] and upper >= known[0]
    elif known is not None:
        row["bracket"] = {"lower": known[0], "upper": known[1], "source": "reference"}
    our_seconds = row["ours"][OURS.name].get("seconds")
    our_rdp_seconds = row["ours"][OURS_RDP.name].get("seconds")
    for found in (*row["ours"].values(), *row["peers"].values()):
        if isinstance(found.get("value"), float) and "bracket" in row:
            found.update(place(found["value"], **row["bracket"]))
    for name, found in row["peers"].items():
        seconds = found.get("seconds")
        found["time_ratio"] = ratio(seconds, our_seconds)
        if name in RDP_PEERS:
            found["time_ratio_rdp"] = ratio(seconds, our_rdp_seconds)


def place(value: float, lower: float, upper: float, source: str) -> dict[str, Any]:
    """Say where a value lies relative to the bracket of the truth."""
    if lower <= value <= upper:
        return {"verdict": "inside", "excess": 0.0}
    end = lower if value < lower else upper
    return {
        "verdict": "below" if value < lower else "above",
        "excess": value / end - 1.0 if end > 0 else None,  # None: the truth is zero
    }


def summarise(rows: list[dict[str, Any]], peers: Iterable[str]) -> dict[str, Any]:
    """Sum up times, ratios and verdicts per engine."""
    summary = {"ours": {}, "peers": {}}
    for name in (OURS.name, OURS_RDP.name):
        summary["ours"][name] = _tally([row["ours"][name] for row in rows])
    widths = [row["bracket_width"] for row in rows if "bracket_width" in row]
    if widths:
        summary["ours"]["bracket_width"] = {
            "median": statistics.median(widths),
            "max": max(widths),
        }
    judged = [row["agrees_with_reference"] for row in rows if "agrees_with_reference" in row]
    summary["ours"]["references"] = {"agree": sum(judged), "of": len(judged)}
    for name in peers:
        found = [row["peers"][name] for row in rows]
        summary["peers"][name] = _tally(found)
    return summary


def _tally(found: list[dict[str, Any]]) -> dict[str, Any]:
    answered = [entry for entry in found if entry["status"] == "ok"]
    failures: dict[str, int] = {}
    for entry in found:
        if entry["status"] != "ok":
            kind = ":".join(entry["status"].split(":")[:2])
            failures[kind] = failures.get(kind, 0) + 1
    below = [entry["excess"] for entry in answered if entry.get("verdict") == "below"]
    above = [entry["excess"] for entry in answered if entry.get("verdict") in ("above", "inside")]
    tally: dict[str, Any] = {"problems": len(found), "answered": len(answered)}
    tally["failures"] = failures
    tally["seconds"] = _spread(entry.get("seconds") for entry in answered)
    for key in ("time_ratio", "time_ratio_rdp"):
        tally[key] = _spread(entry.get(key) for entry in answered)
    tally["below_truth"] = len(below)
    tally["worst_below"] = min(below, default=None)
    tally["excess"] = _spread(above)
    return {key: value for key, value in tally.items() if value is not None}


def _spread(values: Iterable[float | None]) -> dict[str, float] | None:
    numbers = sorted(value for value in values if value is not None)
    if not numbers:
        return None
    return {"median": statistics.median(numbers), "min": numbers[0], "max": numbers[-1]}
