"""From a graph to a program: simplify, schedule, build loop nests, rewrite them, plan memory."""
