"""Fuzzers, mutation testing, and the C programs that run under sanitizers."""
