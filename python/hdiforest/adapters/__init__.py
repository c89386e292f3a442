"""Models of other libraries in our interface, and ours in the interfaces of other libraries."""
