"""Small things that every room shares."""
