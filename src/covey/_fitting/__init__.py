"""Between tables and the engine: what a description says becomes what a model is told, in codes."""
