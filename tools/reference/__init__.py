"""Lakes of an earlier commit, made again, beside those of this one: every table, row by row.

It goes when the code has been moved and renamed.
"""
