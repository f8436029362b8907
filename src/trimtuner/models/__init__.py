"""Numbers only: rows, targets, means and covariances."""
