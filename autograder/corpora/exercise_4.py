"""Exercise 4: ``8:1`` over four threads."""

from tilelab.layout import Layout, logical_divide

RIGHT = {
    "a": "(4,2):(2,1)",
    "a_thread": 0,
    "b": "(4,2):(1,4)",
    "b_thread": 0,
    "sectors_a": 8,
    "sectors_b": 4,
    "better": "b",
    "sectors_float2": 8,
    "why": "all used",
}

WRONG = {
    "the wrong mode named": ({"a": "(2,4):(1,2)", "a_thread": 0}, {"a": 1}),
    "the mode not named": ({"b_thread": None}, {"b": 1}),
    "(a) and (b) exchanged": ({"a": "(4,2):(1,4)", "b": "(4,2):(2,1)"}, {"a": 0, "b": 0}),
    "(b) as 8:1 divided by 2": ({"b": "(2,4):(1,2)", "b_thread": 1}, {"b": 0}),
    "strides exchanged": ({"a": "(4,2):(1,2)"}, {"a": 0}),
    "one mode only": ({"a": "8:1"}, {"a": 0}),
    "elements in falling order": ({"a": [[1, 0], [3, 2], [5, 4], [7, 6]], "a_thread": 0}, {"a": 1}),
    "counted for eight elements": (
        {"sectors_a": 1, "sectors_b": 1, "sectors_float2": 1},
        {"sectors": 0.8},
    ),
    "both loads together": ({"sectors_a": 16, "sectors_b": 8}, {"sectors": 1.2}),
    "float2 halves the bytes": ({"sectors_float2": 4, "why": "fewer bytes"}, {"sectors": 1.2}),
    "neighbours sound coalesced": ({"better": "a", "why": "cached"}, {"sectors": 1.2}),
    "three modes": ({"a": "(2,2,2):(4,2,1)"}, {"a": 0}),
    "one thread's mode only": ({"a": "4:2"}, {"a": 0}),
    "the extents exchanged": ({"a": "(2,4):(2,1)"}, {"a": 0}),
    "the mode as a truth value": ({"a_thread": False}, {"a": 1}),
    "both are said to be better": ({"better": "both"}, {"sectors": 1.6}),
    "bytes instead of sectors": (
        {"sectors_a": 256, "sectors_b": 128, "sectors_float2": 256},
        {"sectors": 0.8},
    ),
    "two loads by float2 as well": ({"sectors_float2": 16}, {"sectors": 1.6}),
    "left blank": (dict.fromkeys(RIGHT), {"a": 0, "b": 0, "sectors": 0}),
}

UNUSUAL = {
    "divided by 2, thread second": {"a": "(2,4):(1,2)", "a_thread": 1},
    "divided by 4 with the modes turned": {"b": Layout((2, 4), (4, 1)), "b_thread": 1},
    "a table of two rows, thread second": {"b": [[0, 1, 2, 3], [4, 5, 6, 7]], "b_thread": 1},
    "nested thread mode": {"a": "((2,2),2):((2,4),1)"},
    "words in other spelling": {"better": "B", "why": "All_used"},
    "words in brackets and quotes": {"better": "(b)", "why": '"all used".'},
    "divided by the package": {"b": logical_divide(Layout(8), 4)},
    "offsets by thread": {"a": [[0, 1], [2, 3], [4, 5], [6, 7]], "b": [[0, 4], [1, 5], [2, 6], [3, 7]]},
    "the mode as a float": {"a_thread": 0.0},
    "an inner pair of brackets": {"a": "(4,(2)):(2,(1))"},
}
