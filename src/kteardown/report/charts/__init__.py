"""The charts of a report: plotly figures as plain data, drawn by the page and by the picture formats."""
