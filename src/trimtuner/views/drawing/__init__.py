"""Pictures of the views, as SVG: the same on the page, in the report, in a notebook and in a file."""
