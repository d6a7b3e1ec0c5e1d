"""The HTTP face: routes parse, call and map; they hold no logic."""
