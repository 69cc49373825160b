"""The explorer: everything the compiler knows of a model, as a document and as a page."""
