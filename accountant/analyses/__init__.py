"""The analyses, which compute privacy losses; one idea a file.

``profile``, ``dispatch``, ``solvers``, ``explanation``
    The answers about a release, the choice of the analysis, the analyses with one interface, and
    the explanation of an answer.
``contour``, ``mixed``, ``gaussian_mixtures``
    Exact: the transform of the loss inverted on a contour, for equal and for different steps, and
    for noise with a random shift; ``user_level``: users with several records.
``gdp``
    Exact: Gaussian noise.
``pld``
    Any pairs whose masses are known, on a grid of losses: upper ends first, lower ones on demand.
``by_groups``
    Parts analysed apart, and dominating pairs in place of parts.
``renyi_conversion``, ``concentrated``
    From above: Rényi divergences at every order, and their conversion.
``classical``, ``optimal``
    Composition of (ε, δ) guarantees.
``replacement_*``, ``overflow_counts``
    Samples of a fixed size, Poisson samples under replace-one, and rare overflows.
``over_steps``, ``moments``, ``adaptive_counts``
    ε after the releases of a history, and what filters over releases chosen as one goes add up.
``tradeoff``
    Bounds on attackers by a profile; ``tradeoff_upper`` bounds the curve from above.

``solver`` has what every analysis answers, and operations on brackets that they share.
"""
