"""The content of a page as plain data: sections with tables, and charts as Vega-Lite specifications."""
