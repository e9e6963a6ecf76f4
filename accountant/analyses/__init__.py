"""HOW a privacy loss is computed: one analysis a file.

``profile``, ``dispatch``, ``solvers``, ``closed_forms``, ``upper_pairs``, ``explanation``
    All answers about a release, which analysis gives them, the analyses with one interface,
    dominating pairs in place of parts, and what is said afterwards.
``contour``, ``mixed``
    Exact: the transform of the loss inverted on a contour, for equal and for different steps.
``gdp``
    Exact: Gaussian noise in closed form.
``pld``
    Any pairs whose masses are known, on a grid of losses; ``single_release`` without one.
``rdp``, ``renyi_conversion``, ``concentrated``
    From above: Rényi divergences at every order, and what follows from one.
``classical``, ``optimal``
    Guarantees (ε, δ) alone.
``tradeoff``
    What a profile means to an attacker; ``tradeoff_upper`` bounds the curve from above.

``arguments``, ``array_evaluation``, ``brackets`` and ``golden_section`` are shared by several.
"""
