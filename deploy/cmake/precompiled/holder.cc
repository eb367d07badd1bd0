// The one unit of a target that only holds a precompiled header.
