"""Truths found without the package: ball arithmetic, quadrature and enumeration."""
