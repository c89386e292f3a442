"""What a fitted model is: read from scikit-learn's forest, predicts, is calibrated."""
