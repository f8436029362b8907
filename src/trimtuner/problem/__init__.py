"""Facts only: parameters, machines, space, goal, constraints, history."""
