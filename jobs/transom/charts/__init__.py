"""What a page shows, as plain data: sections with tables, and charts as Vega-Lite specifications."""
