"""Boots on machines without a hypervisor: by ssh, or exported and imported. Experimental."""

TITLE = "More"
VERBS = {
    "export-boot": "kteardown_metal.verbs:export_boot",
    "import": "kteardown_metal.verbs:import_logs",
}
PLACES = ("kteardown_metal.ssh", "kteardown_metal.exported")
SECTIONS = ("machines",)
