"""The command hdiforest: everything that serves only it."""
