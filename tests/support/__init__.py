"""What tests share: truths found without the package, planted bugs, neighbour twins, helpers.

``tests`` is on the path of pytest, so that a test says ``from support import oracle_checks``.
"""
