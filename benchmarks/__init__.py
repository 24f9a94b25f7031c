"""Measurements: `python -m benchmarks` compares harp with its peers; the other modules run on their own."""
