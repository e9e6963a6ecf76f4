"""Adapters to other libraries; each needs its own optional dependency.

``opacus``, ``dp_events`` and ``sklearn`` are imported by name, and need Opacus, dp-accounting and
scikit-learn; ``torch_batches`` needs nothing but what its caller brings. A module with an
underscore belongs to the one it is named after.
"""
