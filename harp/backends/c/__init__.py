"""Programs as C: printed, compiled once, called."""
