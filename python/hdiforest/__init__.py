"""Shortest prediction intervals from fitted scikit-learn forests."""
