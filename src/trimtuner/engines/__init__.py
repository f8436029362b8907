"""Who runs jobs: for now, a table of measurements that plays one."""
