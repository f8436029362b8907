"""Who runs jobs: this machine, a Ray cluster, rented machines, or a table of measurements that plays them."""
