"""The collector: one program for Python 3.6 and later, which ``bundle`` joins from these modules.

Each module is short, uses only the standard library, and has top-level names that no other module
of this folder has. The docstring of a module says which files it reads, and which locks of the
kernel such a read takes.
"""
