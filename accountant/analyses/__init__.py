"""The analyses, which compute privacy losses; one analysis a file.

``profile``, ``dispatch``, ``solvers``, ``closed_forms``, ``upper_pairs``, ``explanation``
    The answers about a release, the choice of the analysis, the analyses with one interface,
    dominating pairs in place of parts, and the explanation of an answer.
``contour``, ``mixed``, ``gaussian_mixtures``
    Exact: the transform of the loss inverted on a contour, for equal and for different steps, and
    for noise with a random shift; ``user_level``: users with several records; ``training_steps``:
    different steps without the pairs of each.
``gdp``
    Exact: Gaussian noise in closed form.
``pld``
    Any pairs whose masses are known, on a grid of losses; ``single_release`` needs no grid.
``rdp``, ``renyi_conversion``, ``concentrated``
    From above: Rényi divergences at every order, and their conversion.
``classical``, ``optimal``
    Composition of (ε, δ) guarantees.
``over_steps``
    ε after the releases of a history: after each of them, or brackets after some.
``tradeoff``
    Bounds on attackers by a profile; ``tradeoff_upper`` bounds the curve from above.

``arguments``, ``array_evaluation``, ``brackets`` and ``golden_section`` are shared by several.
"""
