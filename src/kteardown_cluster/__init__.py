"""Run boots as jobs of a cluster with Slurm."""

TITLE = "A cluster"
PLACES = ("kteardown_cluster.place",)
SECTIONS = ("slurm",)
HOOKS = {"notes_of_run": "kteardown_cluster.journal:notes_of_run"}
