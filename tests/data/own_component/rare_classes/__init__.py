"""A component of one's own: the example of docs/add-component.md."""
