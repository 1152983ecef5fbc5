"""The charts of a report: what each shows, as plain data, and one drawing of it for pages and files."""
