"""How files and command-line options become an experiment."""
