"""What a person is to know: findings, kept in step with the tables."""
