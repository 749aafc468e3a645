"""The feature `fills`: the rows within frames, and their aggregates, by between-joins."""
