"""What people see and type."""
