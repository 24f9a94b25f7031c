"""What small programs cost at sizes n, 2n and 4n beside the best peer: `python -m benchmarks costs --help`."""
