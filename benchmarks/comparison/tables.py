"""The report as plain text: one table a section, and one of each peer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from comparison.libraries import OURS, OURS_RDP, RDP_PEERS
from comparison.measuring import NOT_INSTALLED

LABELS = {
    "dp-pld": "dp-accounting PLDAccountant",
    "dp-rdp": "dp-accounting RdpAccountant",
    "opacus-prv": "Opacus PRVAccountant",
    "opacus-rdp": "Opacus RDPAccountant",
    "prv-accountant": "prv-accountant DPSGDAccountant",
    "ours": "this library, exact",
    "ours-rdp": 'this library, method="rdp"',
}


# --- cells ------------------------------------------------------------------------------


def time_text(found: dict[str, Any] | None) -> str:
    """Format the time of a call, or the time after which it was ended."""
    if found is None:
        return "-"
    if "at_least_seconds" in found:
        return f"> {found['at_least_seconds']:g} s"
    return seconds_text(found.get("seconds"))


def seconds_text(value: float | None) -> str:
    """Format a duration with three digits."""
    if value is None:
        return "-"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def ratio_text(value: float | None) -> str:
    """Format a ratio of times."""
    if value is None:
        return "-"
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def percent_text(value: float | None) -> str:
    """Format a relative difference, without percent signs where it is huge."""
    if value is None:
        return "-"
    return f"{value:+.2g}" if abs(value) >= 10 else f"{100 * value:+.2g}%"


def epsilon_text(found: dict[str, Any] | None, digits: int = 6) -> str:
    """Format an answer, or the reason that there is none."""
    if found is None:
        return "-"
    value = found.get("value")
    return f"{value:.{digits}g}" if isinstance(value, float) else found["status"][:40]


def verdict_text(found: dict[str, Any]) -> str:
    """Format where an answer lies relative to the truth."""
    verdict = found.get("verdict")
    if verdict is None:
        return "-"
    if verdict == "inside":
        return "inside"
    return ("BELOW " if verdict == "below" else "") + percent_text(found["excess"])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a plain text table; the first column is left-aligned."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def heading(text: str) -> str:
    """Underline a heading."""
    return f"\n{text}\n{'=' * len(text)}"


# --- tables -----------------------------------------------------------------------------


def render(report: dict[str, Any], peers: Sequence[str]) -> str:
    """Return the whole report as text."""
    about = report["environment"]
    versions = ", ".join(
        f"{name} {version or NOT_INSTALLED}" for name, version in about["versions"].items()
    )
    parts = [f"Python {about['python']}, {about['cores']} x {about['processor']}; {versions}"]
    if "problems" in report:
        parts += _render_problems(report, peers)
    if "calibration" in report:
        parts += _render_calibration(report["calibration"])
    if "scaling" in report:
        parts += _render_scaling(report["scaling"])
    if "memory" in report:
        parts += _render_memory(report["memory"])
    return "\n".join(parts)


def _problem_cells(row: dict[str, Any]) -> list[str]:
    return [
        row["family"],
        f"{row['q']:.4g}",
        f"{row['sigma']:g}",
        f"{row['steps']:.4g}" if row["steps"] >= 10**6 else str(row["steps"]),
        f"{row['delta']:g}",
    ]


def _render_problems(report: dict[str, Any], peers: Sequence[str]) -> list[str]:
    rows = report["problems"]
    keys = ["family", "q", "sigma", "steps", "delta"]
    parts = [heading("This library")]
    header = [*keys, "epsilon", "width", "time", "reference", "rdp epsilon", "rdp time"]
    lines = []
    for row in rows:
        exact, rdp = row["ours"][OURS.name], row["ours"][OURS_RDP.name]
        width = row.get("bracket_width")
        reference = row["reference"] or "-"
        if row.get("agrees_with_reference") is False:
            reference += " DISAGREES"
        lines.append(
            [
                *_problem_cells(row),
                epsilon_text(exact, 9),
                "-" if width is None else f"{width:.1e}",
                time_text(exact),
                reference,
                epsilon_text(rdp),
                time_text(rdp),
            ]
        )
    parts.append(table(header, lines))
    for name in peers:
        parts.append(heading(f"{LABELS[name]} ({name})"))
        rdp = name in RDP_PEERS
        header = [*keys, "epsilon", "vs truth", "time", "ratio", *(["vs our rdp"] if rdp else [])]
        lines = []
        for row in rows:
            found = row["peers"][name]
            line = [
                *_problem_cells(row),
                epsilon_text(found),
                verdict_text(found),
                time_text(found),
                ratio_text(found.get("time_ratio")),
            ]
            lines.append(line + ([ratio_text(found.get("time_ratio_rdp"))] if rdp else []))
        parts.append(table(header, lines))
    return parts + _render_summary(report["summary"])


def _render_summary(summary: dict[str, Any]) -> list[str]:
    entries = {key: summary["ours"][key] for key in (OURS.name, OURS_RDP.name)} | summary["peers"]
    parts = [heading("Summary"), _tallies(entries)]
    for name, tally in entries.items():
        if tally["failures"]:
            text = ", ".join(f"{kind} ({count})" for kind, count in tally["failures"].items())
            parts.append(f"no answer from {name}: {text}")
    ours = summary["ours"]
    if "bracket_width" in ours:
        width, known = ours["bracket_width"], ours["references"]
        parts.append(
            f"our relative bracket width: median {width['median']:.1e}, max {width['max']:.1e}; "
            f"known answers inside the bracket: {known['agree']}/{known['of']}"
        )
    parts.append(
        "ratio: peer's time over ours, for problems that the peer answered with a finite epsilon;"
        '\nrdp: the same against our method="rdp"; excess: relative, above our upper bound'
    )
    return parts


def _tallies(entries: dict[str, dict[str, Any]]) -> str:
    header = [
        "engine",
        "answered",
        "median time",
        "max time",
        "median ratio",
        "min ratio",
        "rdp median",
        "rdp min",
        "below truth",
        "worst below",
        "median excess",
        "max excess",
    ]
    lines = []
    for name, tally in entries.items():
        seconds, excess = tally.get("seconds", {}), tally.get("excess", {})
        times, rdp = tally.get("time_ratio", {}), tally.get("time_ratio_rdp", {})
        lines.append(
            [
                name,
                f"{tally['answered']}/{tally['problems']}",
                seconds_text(seconds.get("median")),
                seconds_text(seconds.get("max")),
                ratio_text(times.get("median")),
                ratio_text(times.get("min")),
                ratio_text(rdp.get("median")),
                ratio_text(rdp.get("min")),
                str(tally["below_truth"]),
                percent_text(tally.get("worst_below")),
                percent_text(excess.get("median")),
                percent_text(excess.get("max")),
            ]
        )
    return table(header, lines)


def _render_calibration(rows: list[dict[str, Any]]) -> list[str]:
    header = [
        "target eps",
        "delta",
        "q",
        "steps",
        "our sigma",
        "our eps <=",
        "time",
        "opacus sigma",
        "its true eps",
        "time",
        "ratio",
        "sigma excess",
    ]
    lines = []
    for row in rows:
        mine, theirs = row["ours"], row.get("opacus")
        upper = row.get("ours_epsilon_bounds") or [None, None]
        true = row.get("opacus_epsilon_bounds") or [None, None]
        lines.append(
            [
                f"{row['target_eps']:g}",
                f"{row['delta']:g}",
                f"{row['q']:.4g}",
                str(row["steps"]),
                epsilon_text(mine, 8),
                "-" if upper[1] is None else f"{upper[1]:.10g}",
                time_text(mine),
                epsilon_text(theirs, 8),
                "-" if true[0] is None else f"{true[0]:.6g}",
                time_text(theirs),
                ratio_text(row.get("time_ratio")),
                percent_text(row.get("sigma_excess")),
            ]
        )
    return [heading("Calibration of sigma against Opacus (PRV)"), table(header, lines)]


def _render_scaling(rows: list[dict[str, Any]]) -> list[str]:
    header = ["engine", "q", "sigma", "delta", "few", "time", "many", "time", "ratio"]
    lines = [
        [
            row["engine"],
            f"{row['q']:g}",
            f"{row['sigma']:g}",
            f"{row['delta']:g}",
            f"{row['few_steps']:.0e}: {epsilon_text(row['few'])}",
            time_text(row["few"]),
            f"{row['many_steps']:.0e}: {epsilon_text(row['many'])}",
            time_text(row["many"]),
            ratio_text(row["time_ratio"]),
        ]
        for row in rows
    ]
    return [heading("Time of many steps over few steps"), table(header, lines)]


def _render_memory(rows: list[dict[str, Any]]) -> list[str]:
    names = list(rows[0]["peak_mb"]) if rows else []
    lines = [
        [
            row["problem"],
            *(
                f"{found:.1f} MB" if isinstance(found, float) else str(found)[:30]
                for found in row["peak_mb"].values()
            ),
        ]
        for row in rows
    ]
    return [
        heading("Growth of the resident set by one call in a fresh process"),
        table(["problem", *names], lines),
    ]
