"""Helpers that several subpackages use."""
