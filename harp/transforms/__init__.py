"""Functions to functions: jit, grad, vjp, and the tables of rules behind them."""
