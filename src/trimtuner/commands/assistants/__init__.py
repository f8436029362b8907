"""What an assistant may do with studies: those that its user has allowed, by name, within their budgets."""
