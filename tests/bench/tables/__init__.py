"""The tables of the five papers, each a module with TITLE and run(options) that returns a Table."""
