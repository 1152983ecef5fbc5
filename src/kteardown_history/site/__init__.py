"""``kteardown site``: a folder of pages of all results, which can be published as it is."""
