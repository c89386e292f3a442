"""Models of other libraries as ours, and ours in the interfaces of other libraries."""
