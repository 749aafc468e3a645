"""The page of a stream, for a browser, a file and a notebook: findings, hours, results, quality. No Spark.

view = view_of("lake", "schemas/streams/web.yaml", Interval.parse("2015-05-17T00:00", "2015-05-18T00:00"))
view                                   # in a notebook
Path("web.html").write_text(view.page())
"""
