//! p4runtime-shell from PyPI, unmodified.
