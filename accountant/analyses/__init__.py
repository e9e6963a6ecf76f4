"""HOW a privacy loss is computed: one analysis a file.

``choose``, ``solvers``, ``explanation``
    Which analysis answers for a mix, one face for all of them, and what it says afterwards.
``contour``, ``mixed``
    Exact: the transform of the loss inverted on a contour, for equal and for different steps.
``gdp``
    Exact: Gaussian noise in closed form.
``pld``
    Any pairs whose masses are known, on a grid of losses. It stands on ``_grid`` (two laws that
    enclose one part), ``_lattice`` and ``_saddle`` (which grid, and where), ``_compose`` and
    ``_fft`` (the sum).
``rdp``, ``renyi_conversion``, ``concentrated``
    From above: Rényi divergences at every order, and what follows from one.
``classical``, ``optimal``
    Guarantees (ε, δ) alone. ``optimal`` stands on ``_loss_table``, ``_binomial`` and
    ``_grid_of_parts``.
``tradeoff``
    What a profile means to an attacker; from above by ``_secants``.

``_arguments``, ``_golden``, ``_inverse`` and ``_loops`` are what several of them share.
"""
