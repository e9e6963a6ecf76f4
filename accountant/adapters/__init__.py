"""Adapters to other libraries; each needs its own optional dependency.

``opacus``, ``dp_events``, ``sklearn``, ``flower`` and ``nvflare`` are imported by name, and need
Opacus, dp-accounting, scikit-learn, Flower and NVFlare; ``torch_batches`` and ``federated`` need
nothing but what their callers bring. A module with an
underscore belongs to the one it is named after.
"""
