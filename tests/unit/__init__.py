"""Unit tests; a package so that what they share has a name of its own."""
