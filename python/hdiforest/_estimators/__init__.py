"""The estimators, in scikit-learn's interface."""
