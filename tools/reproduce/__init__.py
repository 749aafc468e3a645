"""The figures of the papers, reproduced: each with a target of its own."""
